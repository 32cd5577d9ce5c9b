package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

func newClock() *testclock.Clock { return testclock.At(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) }

// vault is a secret store in a map.
type vault map[string]string

func (v vault) Resolve(_ context.Context, name, key string) (string, error) {
	s, ok := v[name+"/"+key]
	if !ok {
		return "", fmt.Errorf("secret %s: not there", name)
	}
	return s, nil
}

// rig is a lease function over a memory store, with a clock that tests move.
type rig struct {
	t     *testing.T
	clock *testclock.Clock
	store *memory.Store
	*Service
	server *Server
	http   http.Handler
	vault  vault
}

func newRig(t *testing.T, entries map[string]fleet.Entry) *rig {
	t.Helper()
	c := newClock()
	r := &rig{t: t, clock: c, store: memory.New(c.Now), vault: vault{}}
	r.publish(entries)
	r.Service = r.instance(r.store)
	r.server = &Server{Service: r.Service, Version: "test"}
	r.http = r.server.Handler()
	return r
}

// instance is another process of the same function.
func (r *rig) instance(s Store) *Service {
	return New(Deps{Store: s, Secrets: r.vault, Metrics: NewMetrics(prometheus.NewRegistry()), Now: r.clock.Now})
}

// ready is a proxy that can be leased.
func ready(capacity int32, labels ...string) fleet.Entry {
	e := fleet.Entry{
		Host: "192.0.2.1", Port: 3128, Incarnation: 1, Labels: map[string]string{}, Mode: fleet.Managed, Provider: "mock", Region: "us-east1",
		MaxLeases: capacity, Capacity: capacity, Ceiling: capacity, Verdict: fleet.Verdict{Healthy: true, Outcome: fleet.OutcomeOK, Incarnation: 1},
	}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		e.Labels[k] = v
	}
	return e
}

// publish makes the catalog what reconcile would make it.
func (r *rig) publish(entries map[string]fleet.Entry) {
	r.t.Helper()
	ctx := context.Background()
	shards, err := r.store.ReadCatalog(ctx)
	require.NoError(r.t, err)
	sh := store.Shard{}
	var drop []string
	if len(shards) > 0 {
		sh = shards[0]
		for name := range sh.Entries {
			if _, ok := entries[name]; !ok {
				drop = append(drop, name)
			}
		}
	}
	_, err = r.store.WriteShard(ctx, sh, entries, drop)
	require.NoError(r.t, err)
}

func (r *rig) change(name string, f func(*fleet.Entry)) {
	r.t.Helper()
	shards, err := r.store.ReadCatalog(context.Background())
	require.NoError(r.t, err)
	entries := maps.Clone(shards[0].Entries)
	e := entries[name]
	f(&e)
	entries[name] = e
	r.publish(entries)
	r.clock.Advance(stale + time.Second)
}

func (r *rig) acquire(ctx context.Context, q Request) (Lease, error) {
	if q.TTL == 0 {
		q.TTL = DefaultTTL
	}
	return r.Service.Acquire(ctx, q)
}

func (r *rig) mustAcquire(q Request) Lease {
	r.t.Helper()
	l, err := r.acquire(r.t.Context(), q)
	require.NoError(r.t, err)
	return l
}

func (r *rig) refused(reason Reason, err error) {
	r.t.Helper()
	require.Error(r.t, err)
	require.Equal(r.t, reason, asError(err).Reason, err.Error())
}

func (r *rig) live() int {
	r.t.Helper()
	n, err := r.store.CountSlots(context.Background(), r.clock.Now())
	require.NoError(r.t, err)
	return int(n)
}

// call makes one HTTP call and decodes the answer.
func (r *rig) call(method, path, body string, header ...string) (int, map[string]any, http.Header) {
	r.t.Helper()
	return do(r.t, r.http, method, path, body, header...)
}

func do(t *testing.T, h http.Handler, method, path, body string, header ...string) (int, map[string]any, http.Header) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	data, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	var out map[string]any
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		require.NoError(t, json.Unmarshal(data, &out), "%s", data)
	}
	return w.Code, out, w.Header()
}

func reasonIn(answer map[string]any) string {
	e, _ := answer["error"].(map[string]any)
	if e == nil {
		return ""
	}
	return e["details"].([]any)[0].(map[string]any)["reason"].(string)
}

func seeded(seed uint64) func() float64 { return rand.New(rand.NewPCG(seed, 1)).Float64 }

// spy counts the calls on slots, and can make one of them lose its answer or fail.
type spy struct {
	*memory.Store
	mu    sync.Mutex
	calls map[string]int
	lose  map[string]bool // the next call is applied, but its answer is that of the repeated commit
	fail  error           // every call fails with it, or those named by only
	only  string
	most  int // slots in one answer
}

func newSpy(s *memory.Store) *spy {
	return &spy{Store: s, calls: map[string]int{}, lose: map[string]bool{}}
}

func (s *spy) note(call string) (lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	lost = s.lose[call]
	delete(s.lose, call)
	if s.only != "" && s.only != call {
		return lost, nil
	}
	return lost, s.fail
}

// failOn has calls of one kind fail.
func (s *spy) failOn(call string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.only, s.fail = call, err
}

func (s *spy) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		n += c
	}
	return n
}

func (s *spy) CreateSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	lost, err := s.note("create")
	if err != nil {
		return slot, err
	}
	got, err := s.Store.CreateSlot(ctx, slot, req)
	if lost && err == nil {
		return slot, store.ErrExists
	}
	return got, err
}

func (s *spy) ReplaceSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	lost, err := s.note("replace")
	if err != nil {
		return slot, err
	}
	got, err := s.Store.ReplaceSlot(ctx, slot, req)
	if lost && err == nil {
		return slot, store.ErrConflict
	}
	return got, err
}

func (s *spy) DeleteSlot(ctx context.Context, slot store.Slot) error {
	lost, err := s.note("delete")
	if err != nil {
		return err
	}
	err = s.Store.DeleteSlot(ctx, slot)
	if lost && err == nil {
		return store.ErrConflict
	}
	return err
}

func (s *spy) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	if _, err := s.note("get"); err != nil {
		return store.Slot{}, err
	}
	return s.Store.GetSlot(ctx, proxy, n)
}

func (s *spy) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	if _, err := s.note("window"); err != nil {
		return nil, err
	}
	slots, err := s.Store.SlotsFrom(ctx, from, to, limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = max(s.most, len(slots))
	return slots, err
}

func (s *spy) ProxySlots(ctx context.Context, proxy string) ([]store.Slot, error) {
	if _, err := s.note("look"); err != nil {
		return nil, err
	}
	return s.Store.ProxySlots(ctx, proxy)
}

func (s *spy) CountSlots(ctx context.Context, at time.Time) (int64, error) {
	if _, err := s.note("count"); err != nil {
		return 0, err
	}
	return s.Store.CountSlots(ctx, at)
}

func (s *spy) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	s.mu.Lock()
	err := s.fail
	if s.only != "" {
		err = nil
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.Store.ReadCatalog(ctx)
}

// slowCatalog takes a second to read the catalog.
type slowCatalog struct {
	*memory.Store
	reads chan struct{}
}

func (s slowCatalog) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	s.reads <- struct{}{}
	time.Sleep(time.Second)
	return s.Store.ReadCatalog(ctx)
}
