package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

// start is when the tests' worlds begin.
var start = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

const (
	testOwner    = "test-owner"
	testDatabase = "(default)"
)

// world is a plane with two mock clouds, main and other.
type world struct {
	*testing.T
	clock *testclock.Clock
	store *memory.Store
	main  *mock.Cloud
	other *mock.Cloud
	rec   *Reconciler
	last  Summary
}

type option func(*Config, *mock.Settings)

func newWorld(t *testing.T, options ...option) *world {
	t.Helper()
	w := &world{T: t, clock: testclock.At(start)}
	w.store = memory.New(w.clock.Now)
	settings := mock.Settings{ProvisionDelay: 30 * time.Second, StopDelay: 20 * time.Second}
	c := Config{Store: w.store, Owner: testOwner, Database: testDatabase, Now: w.clock.Now, Random: func() float64 { return 0.5 }}
	c.Providers = map[string]Account{"main": {}, "other": {}}
	for _, o := range options {
		o(&c, &settings)
	}
	w.main, w.other = w.open(settings), w.open(settings)
	for name, cloud := range map[string]*mock.Cloud{"main": w.main, "other": w.other} {
		if a := c.Providers[name]; a.Provider == nil {
			a.Provider = cloud
			c.Providers[name] = a
		}
	}
	w.rec = New(c)
	return w
}

func (w *world) open(s mock.Settings) *mock.Cloud {
	c, err := mock.Open(s, mock.WithClock(w.clock.Now), mock.WithoutListener())
	require.NoError(w, err)
	return c
}

// capped lets n instances exist at provider main.
func capped(n int) option {
	return func(c *Config, _ *mock.Settings) { c.Providers["main"] = Account{MaxInstances: n} }
}

// spec is a Managed spec in the manifest's form; changes are laid over it.
func spec(changes map[string]any) map[string]any {
	s := map[string]any{
		"mode": "Managed", "provider": "main",
		"placement": map[string]any{"region": "r1", "zones": []any{"r1-a", "r1-b"}, "machineType": "small"},
		"lifecycle": map[string]any{"drainTimeout": "10m"},
	}
	for k, v := range changes {
		if v == nil {
			delete(s, k)
		} else {
			s[k] = v
		}
	}
	return s
}

func (w *world) put(name string, changes map[string]any) {
	w.Helper()
	_, err := w.store.CreateProxy(w.Context(), name, store.Edit{Spec: spec(changes)})
	require.NoError(w, err)
}

func (w *world) edit(name string, changes map[string]any) {
	w.Helper()
	_, err := w.store.EditProxy(w.Context(), name, store.Edit{Spec: spec(changes)}, time.Time{})
	require.NoError(w, err)
}

func (w *world) askDelete(name string) {
	w.Helper()
	_, err := w.store.EditProxy(w.Context(), name, store.Edit{DeleteTime: w.clock.Now()}, time.Time{})
	require.NoError(w, err)
}

func (w *world) get(name string) fleet.Proxy {
	w.Helper()
	p, err := w.store.GetProxy(w.Context(), name)
	require.NoError(w, err)
	return p
}

func (w *world) exists(name string) bool {
	_, err := w.store.GetProxy(w.Context(), name)
	return err == nil
}

func (w *world) condition(name string, t fleet.ConditionType) fleet.Condition {
	w.Helper()
	c, ok := w.get(name).Status.Conditions.Get(t)
	require.True(w, ok, "condition %s of %s", t, name)
	return c
}

func (w *world) entry(name string) fleet.Entry {
	w.Helper()
	shards, err := w.store.ReadCatalog(w.Context())
	require.NoError(w, err)
	at, ok := places(shards)[name]
	require.True(w, ok, "%s is not in the catalog", name)
	return at.entry
}

// run runs once, now.
func (w *world) run() Summary {
	w.Helper()
	s, err := w.rec.Run(w.Context(), w.clock.Now())
	require.NoError(w, err)
	w.last = s
	return s
}

// tick runs n times, with a minute before each, and probes as the health function would.
func (w *world) tick(n int) {
	w.Helper()
	for range n {
		w.clock.Advance(time.Minute)
		w.run()
		w.probe(nil)
	}
}

// up brings all documents up.
func (w *world) up() {
	w.Helper()
	w.run()
	w.tick(2)
}

// probe judges every endpoint and successor: healthy unless sick says otherwise.
func (w *world) probe(sick map[string]bool) {
	w.Helper()
	proxies, err := w.store.ListProxies(w.Context())
	require.NoError(w, err)
	shards, err := w.store.ReadCatalog(w.Context())
	require.NoError(w, err)
	for _, p := range proxies {
		judge(w.Context(), w.store, places(shards), p, sick[p.Name], w.clock.Now())
	}
}

// judge writes what the health function would about p.
func judge(ctx context.Context, s Store, catalog map[string]place, p fleet.Proxy, sick bool, now time.Time) {
	before := p.Status.Clone()
	if e := p.Status.Endpoint; e != nil {
		p.Status.Health = verdictOn(p.Status.Health, e.Incarnation, sick, now)
		p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionHealthy, Status: !sick, Reason: map[bool]string{true: "ProbesPass", false: "Refused"}[!sick]}, now)
	}
	if n := p.Status.Next; n != nil && n.Address != "" && (p.Status.Endpoint == nil || p.Status.Endpoint.Incarnation != n.Incarnation) {
		p.Status.NextHealth = verdictOn(p.Status.NextHealth, n.Incarnation, false, now)
	}
	if sameStatus(before, p.Status) {
		return
	}
	p.Status.Conditions.Set(fleet.ReadyCondition(p), now)
	written, err := s.WriteStatus(ctx, p, store.HealthFields)
	if err != nil {
		return
	}
	if at, ok := catalog[p.Name]; ok {
		_ = s.SetVerdict(ctx, at.shard, p.Name, fleet.VerdictOf(written))
	}
}

func verdictOn(h fleet.Health, incarnation int64, sick bool, now time.Time) fleet.Health {
	if h.Incarnation == incarnation && h.Healthy == !sick && !h.LastProbeTime.IsZero() {
		return h
	}
	h = fleet.Health{Incarnation: incarnation, Tick: now, LastProbeTime: now, Healthy: !sick, Outcome: fleet.OutcomeOK}
	if sick {
		h.Outcome, h.UnhealthySince, h.ConsecutiveFailures = fleet.OutcomeRefused, now, 3
	}
	return h
}

// lease takes slot n as the lease function would.
func (w *world) lease(name string, n int, ttl time.Duration) store.Slot {
	w.Helper()
	e := w.entry(name)
	s, err := w.store.CreateSlot(w.Context(), store.Slot{
		Proxy: name, N: n, LeaseID: fmt.Sprintf("%s.%d.x", name, n), Incarnation: e.Incarnation,
		AcquireTime: w.clock.Now(), ExpireTime: w.clock.Now().Add(ttl),
	}, nil)
	require.NoError(w, err)
	return s
}

// alive returns the instances of cloud main that are ours and not on their way out, by name.
func alive(c *mock.Cloud) []provider.Instance {
	var out []provider.Instance
	for _, i := range c.Instances() {
		if i.Owner == testOwner && isAlive(i) {
			out = append(out, i)
		}
	}
	return out
}

func (w *world) events(name string) []string {
	w.Helper()
	var out []string
	for _, e := range w.get(name).Status.Events {
		out = append(out, e.Reason)
	}
	return out
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	p := w.get("a")
	assert.Equal(t, fleet.PhaseRunning, p.Status.Phase)
	assert.True(t, w.entry("a").Ready())
	t.Logf("%+v", p.Status)
	t.Logf("%+v", w.last)
	w.edit("a", map[string]any{"endpoint": map[string]any{"port": 3129}})
	w.tick(6)
	t.Logf("%+v", w.get("a").Status)
	assert.Len(t, alive(w.main), 1)
	w.askDelete("a")
	w.tick(4)
	assert.False(t, w.exists("a"))
	assert.Empty(t, w.main.Instances())
}
