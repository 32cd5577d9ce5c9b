package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/store"
)

// faulty is a store that fails where it is told to, and counts.
type faulty struct {
	Store
	fail   map[string]error
	before map[string]func()
	counts map[string]*atomic.Int64
}

func newFaulty(s Store) *faulty {
	f := &faulty{Store: s, fail: map[string]error{}, before: map[string]func(){}, counts: map[string]*atomic.Int64{}}
	for _, call := range []string{"LockRun", "UnlockRun", "ListProxies", "GetProxy", "WriteStatus", "RemoveProxy", "ReadCatalog", "WriteShard", "ExpiredSlots", "DeleteSlot", "ProxySlots", "SlotsFrom"} {
		f.counts[call] = &atomic.Int64{}
	}
	return f
}

func (f *faulty) call(name string) error {
	f.counts[name].Add(1)
	if do := f.before[name]; do != nil {
		do()
	}
	return f.fail[name]
}

func (f *faulty) LockRun(ctx context.Context, h string, now time.Time, ttl time.Duration) (store.Run, error) {
	if err := f.call("LockRun"); err != nil {
		return store.Run{}, err
	}
	return f.Store.LockRun(ctx, h, now, ttl)
}

func (f *faulty) UnlockRun(ctx context.Context, r store.Run) error {
	if err := f.call("UnlockRun"); err != nil {
		return err
	}
	return f.Store.UnlockRun(ctx, r)
}

func (f *faulty) ListProxies(ctx context.Context) ([]fleet.Proxy, error) {
	if err := f.call("ListProxies"); err != nil {
		return nil, err
	}
	return f.Store.ListProxies(ctx)
}

func (f *faulty) GetProxy(ctx context.Context, name string) (fleet.Proxy, error) {
	if err := f.call("GetProxy"); err != nil {
		return fleet.Proxy{}, err
	}
	return f.Store.GetProxy(ctx, name)
}

func (f *faulty) WriteStatus(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error) {
	if err := f.call("WriteStatus"); err != nil {
		return p, err
	}
	return f.Store.WriteStatus(ctx, p, fields)
}

func (f *faulty) RemoveProxy(ctx context.Context, p fleet.Proxy) error {
	if err := f.call("RemoveProxy"); err != nil {
		return err
	}
	return f.Store.RemoveProxy(ctx, p)
}

func (f *faulty) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	if err := f.call("ReadCatalog"); err != nil {
		return nil, err
	}
	return f.Store.ReadCatalog(ctx)
}

func (f *faulty) WriteShard(ctx context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	if err := f.call("WriteShard"); err != nil {
		return time.Time{}, err
	}
	return f.Store.WriteShard(ctx, sh, put, drop)
}

func (f *faulty) ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]store.Slot, error) {
	if err := f.call("ExpiredSlots"); err != nil {
		return nil, err
	}
	return f.Store.ExpiredSlots(ctx, before, limit)
}

func (f *faulty) DeleteSlot(ctx context.Context, s store.Slot) error {
	if err := f.call("DeleteSlot"); err != nil {
		return err
	}
	return f.Store.DeleteSlot(ctx, s)
}

func (f *faulty) ProxySlots(ctx context.Context, proxy string) ([]store.Slot, error) {
	if err := f.call("ProxySlots"); err != nil {
		return nil, err
	}
	return f.Store.ProxySlots(ctx, proxy)
}

func (f *faulty) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	if err := f.call("SlotsFrom"); err != nil {
		return nil, err
	}
	return f.Store.SlotsFrom(ctx, from, to, limit)
}

func newFaultyWorld(t *testing.T, options ...option) (*world, *faulty) {
	w := newWorld(t, options...)
	f := newFaulty(w.store)
	w.rec.Store = f
	return w, f
}

var errOutage = errors.New("the store is away")

func TestASteadyFleetCostsOneReadEachOneListingAndNoWrite(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	const n = 40
	for i := range n {
		w.put(fmt.Sprintf("p%02d", i), nil)
	}
	w.up()
	w.tick(2)
	for _, c := range f.counts {
		c.Store(0)
	}
	calls := w.main.Calls()
	w.tick(3)
	assert.EqualValues(t, 3, f.counts["ListProxies"].Load(), "one query a run, one read a document")
	assert.EqualValues(t, 3, f.counts["ReadCatalog"].Load())
	for _, call := range []string{"GetProxy", "WriteStatus", "WriteShard", "RemoveProxy", "DeleteSlot", "ProxySlots", "SlotsFrom"} {
		assert.Zero(t, f.counts[call].Load(), call)
	}
	assert.Equal(t, calls.Total()+3, w.main.Calls().Total(), "one listing a run")
	assert.Empty(t, w.last.Actions)
	assert.Equal(t, n, w.last.Ready)
}

func TestARunThatCannotLockOrReadSaysSoAndFreesTheLock(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"LockRun", "ListProxies", "ReadCatalog"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, f := newFaultyWorld(t)
			w.put("a", nil)
			f.fail[call] = errOutage
			_, err := w.rec.Run(t.Context(), w.clock.Now())
			require.ErrorIs(t, err, errOutage)
			assert.Zero(t, w.main.Calls().Create)
			delete(f.fail, call)
			w.clock.Advance(time.Second)
			w.run()
			assert.Equal(t, 1, w.main.Calls().Create, "the next run is not kept out")
		})
	}
}

func TestAnUnreadableFleetKeepsWhatTheLastRunKnew(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	require.True(t, w.main.Place(provider.Instance{Name: "proxy-orphan", Owner: testOwner, UID: "nobody", CreateTime: start.Add(-time.Hour)}))
	w.run()
	f.fail["ListProxies"] = errOutage
	_, err := w.rec.Run(t.Context(), w.clock.Now())
	require.Error(t, err)
	run, err := w.store.GetRun(t.Context())
	require.NoError(t, err)
	assert.Len(t, run.Orphans, 1)
}

func TestALockWhoseAnswerWasLostIsOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rec.Holder = func() string { return "us" }
	_, err := w.store.LockRun(t.Context(), "us", w.clock.Now(), time.Minute)
	require.NoError(t, err)
	w.put("a", nil)
	s := w.run()
	assert.Empty(t, s.Skipped)
	assert.Equal(t, 1, w.main.Made())
}

func TestAProviderThatCannotBeListedStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.put("b", map[string]any{"provider": "other"})
	w.up()
	end := w.main.Outage()
	w.put("c", nil)
	w.put("d", map[string]any{"provider": "other"})
	calls := w.main.Calls()
	w.clock.Advance(time.Minute)
	s, err := w.rec.Run(t.Context(), w.clock.Now())
	require.ErrorContains(t, err, "list instances of main")
	assert.Equal(t, []string{"main"}, s.Incomplete)
	assert.Equal(t, 2, w.other.Made())
	assert.Equal(t, calls.Total()+1, w.main.Calls().Total(), "nothing but the listing is tried")
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase, "nothing is declared gone")
	assert.True(t, w.entry("a").Ready())
	end()
	w.tick(3)
	assert.Equal(t, 4, w.last.Ready)
}

func TestAnIncompleteListingDeclaresNothingGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.put("b", map[string]any{"placement": map[string]any{"region": "r1", "zone": "r1-b"}})
	w.up()
	w.main.HideZones("r1-a")
	w.tick(3)
	assert.Equal(t, 2, w.last.Ready)
	assert.Equal(t, 2, w.main.Made())
	assert.Equal(t, []string{"main"}, w.last.Incomplete)
	w.main.Vanish(w.get("b").Status.Instance.Name)
	w.tick(3)
	assert.Equal(t, 3, w.main.Made(), "in a zone that answered, Get confirms that it is gone")
	assert.EqualValues(t, 2, w.get("b").Status.Instance.Incarnation)
	assert.EqualValues(t, 1, w.get("a").Status.Instance.Incarnation)
}

func TestWhenTimeIsUpTheNextRunGoesOnBehindTheCursor(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t, func(c *Config, _ *mock.Settings) { c.Concurrency = 1 })
	for n := range 9 {
		w.put(fmt.Sprint("p", n), nil)
	}
	f.before["WriteStatus"] = func() { w.clock.Advance(25 * time.Second) } // a slow store
	s := w.run()
	assert.True(t, s.OutOfTime)
	run, err := w.store.GetRun(t.Context())
	require.NoError(t, err)
	first := w.main.Made()
	require.Positive(t, first)
	require.Less(t, first, 9)
	assert.NotEmpty(t, run.Cursor)
	runs := 1
	for ; w.main.Made() < 9; runs++ {
		require.Less(t, runs, 10)
		w.run()
	}
	f.before = map[string]func(){}
	s = w.run()
	assert.False(t, s.OutOfTime)
	run, err = w.store.GetRun(t.Context())
	require.NoError(t, err)
	assert.Empty(t, run.Cursor)
}

func TestAPanicOverOneProxyStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("bad", nil)
	w.put("good", nil)
	w.rec.onVisit = func(_ context.Context, name string) {
		if name == "bad" {
			panic("what a mess")
		}
	}
	s := w.run()
	assert.Equal(t, 1, s.Errors[errorPanic])
	assert.Contains(t, s.Failures[0].Message, "what a mess")
	assert.Equal(t, 1, w.main.Made())
	run, err := w.store.GetRun(t.Context())
	require.NoError(t, err)
	assert.Empty(t, run.Holder, "the lock is free")
}

func TestAStoreThatRefusesAStatusFailsThatProxyOnly(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", nil)
	f.fail["WriteStatus"] = errOutage
	s := w.run()
	assert.Equal(t, 1, s.Errors[errorStore])
	assert.Zero(t, w.main.Made(), "without a recorded intent nothing is created")
	delete(f.fail, "WriteStatus")
	w.tick(3)
	assert.Equal(t, 1, w.last.Ready)
}

func TestADocumentThatChangesMeanwhileIsPlannedAnew(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", nil)
	once := true
	f.before["WriteStatus"] = func() {
		if once {
			once = false
			w.edit("a", map[string]any{"paused": true})
		}
	}
	w.run()
	assert.Zero(t, w.main.Made(), "it was paused a moment before")
	assert.EqualValues(t, 1, f.counts["GetProxy"].Load())
}

func TestADocumentThatVanishesMeanwhileIsLetGo(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", nil)
	f.before["WriteStatus"] = func() { w.store.Remove("a") }
	s := w.run()
	assert.Empty(t, s.Errors)
	assert.Zero(t, w.main.Made())
}

func TestEveryFirstWriteMayBeLost(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	for n := range 5 {
		w.put(fmt.Sprint("p", n), nil)
	}
	lossy := &losingFirst{faulty: f, lost: map[string]bool{}}
	w.rec.Store = lossy
	w.up()
	w.tick(2)
	assert.Equal(t, 5, w.last.Ready)
	assert.Equal(t, 5, w.main.Made())
	assert.NotEmpty(t, lossy.lost)
}

func TestProbesAreStartedBeforeAnythingSlowAndCollectedAtTheEnd(t *testing.T) {
	t.Parallel()
	prober := &recordingProber{err: errors.New("the topic is away")}
	w := newWorld(t, func(c *Config, _ *mock.Settings) { c.Prober = prober })
	w.put("a", nil)
	w.put("ext", map[string]any{"mode": "External", "provider": nil, "placement": nil, "lifecycle": nil, "endpoint": map[string]any{"host": "proxy.example.net"}, "healthCheck": map[string]any{"intervalSeconds": 300}})
	w.up()
	release := w.main.Stall()
	collected := make(chan int, 1)
	prober.when = func() { collected <- w.main.Calls().List }
	lists := w.main.Calls().List
	done := make(chan Summary)
	go func() {
		s, _ := w.rec.Run(t.Context(), w.clock.Now())
		done <- s
	}()
	require.Eventually(t, func() bool { return w.main.Calls().List > lists }, 5*time.Second, time.Millisecond)
	assert.Equal(t, []Target{{Name: "a", Incarnation: 1, Shard: 0, Interval: time.Minute}, {Name: "ext", Shard: 0, Interval: 5 * time.Minute}}, prober.last())
	assert.Empty(t, collected)
	release()
	s := <-done
	assert.Equal(t, lists+1, <-collected)
	assert.Equal(t, 2, s.ProbesDue)
	assert.Equal(t, "the topic is away", s.PublishError)
	assert.Equal(t, 2, s.Ready, "and nothing else fails for it")
}

func TestWhatIsProbed(t *testing.T) {
	t.Parallel()
	prober := &recordingProber{}
	w := newWorld(t, func(c *Config, _ *mock.Settings) { c.Prober = prober })
	w.put("a", nil)
	w.run()
	assert.Empty(t, prober.last(), "what has no address is not probed")
	w.clock.Advance(time.Minute)
	w.run()
	w.clock.Advance(time.Minute)
	w.run()
	assert.Equal(t, []Target{{Name: "a", Incarnation: 1, Shard: 0, Interval: time.Minute, Unproven: true}}, prober.last())
	w.probe(nil)
	w.edit("a", map[string]any{"endpoint": map[string]any{"port": 3129}})
	w.run()
	w.clock.Advance(time.Minute)
	w.run()
	w.clock.Advance(time.Minute)
	w.run()
	assert.Equal(t, []Target{
		{Name: "a", Incarnation: 1, Shard: 0, Interval: time.Minute},
		{Name: "a", Incarnation: 2, Shard: 0, Interval: time.Minute, Next: true, Unproven: true},
	}, prober.last(), "its successor, too")
	w.store.PutRaw("a", map[string]any{"spec": "nonsense"})
	w.run()
	assert.Empty(t, prober.last(), "a faulty document is not probed")
}

func TestTheSummaryOfALockedRunIsShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.store.LockRun(t.Context(), "somebody", w.clock.Now(), time.Minute)
	require.NoError(t, err)
	data, err := json.Marshal(w.run())
	require.NoError(t, err)
	assert.JSONEq(t, `{"skipped":"locked"}`, string(data))
}

func TestTheSummaryIsKeptForPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.run()
	run, err := w.store.GetRun(t.Context())
	require.NoError(t, err)
	var s map[string]any
	require.NoError(t, json.Unmarshal(run.Summary, &s))
	assert.EqualValues(t, 1, s["proxies"])
	assert.Equal(t, map[string]any{"Provisioning": 1.0}, s["phases"])
	assert.Equal(t, w.clock.Now(), run.EndTime)
}

func TestMetricsTellOfRunsAndFleet(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	w := newWorld(t, func(c *Config, _ *mock.Settings) { c.Metrics = NewMetrics(reg) })
	w.put("a", nil)
	w.put("stray", map[string]any{"provider": "not-configured"})
	require.True(t, w.main.Place(provider.Instance{Name: "proxy-orphan", Owner: testOwner, UID: "nobody", CreateTime: start}))
	w.up()
	w.main.Vanish(w.get("a").Status.Instance.Name)
	w.tick(1)
	m := w.rec.Metrics
	assert.EqualValues(t, 4, testutil.ToFloat64(m.runs.WithLabelValues(outcomeDone)))
	assert.EqualValues(t, 1, testutil.ToFloat64(m.orphans))
	assert.EqualValues(t, 0, testutil.ToFloat64(m.frozen))
	assert.EqualValues(t, 1, testutil.ToFloat64(m.proxies.WithLabelValues("Provisioning", "main")))
	assert.EqualValues(t, 1, testutil.ToFloat64(m.proxies.WithLabelValues("Pending", unknownProvider)), "names that anybody may choose are no labels")
	assert.EqualValues(t, 1, testutil.ToFloat64(m.replacements.WithLabelValues(string(ReasonLost))))
	assert.EqualValues(t, 2, testutil.ToFloat64(m.conditions.WithLabelValues("Accepted", "true")))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestRunsAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	m := NewMetrics(prometheus.NewRegistry())
	m.ran(Summary{Skipped: skippedLocked}, nil, 0)
	m.ran(Summary{OutOfTime: true}, nil, time.Second)
	m.ran(Summary{}, errOutage, time.Second)
	m.ran(Summary{Errors: map[string]int{errorStore: 2}}, nil, time.Second)
	for outcome, want := range map[string]float64{outcomeSkipped: 1, outcomeOutOfTime: 1, outcomeFailed: 1, outcomeDone: 1} {
		assert.InDelta(t, want, testutil.ToFloat64(m.runs.WithLabelValues(outcome)), 0, outcome)
	}
	assert.EqualValues(t, 2, testutil.ToFloat64(m.errors.WithLabelValues("store")))
	var none *Metrics
	none.ran(Summary{}, nil, 0)
	none.observe(nil, nil, Summary{})
}

// losingFirst loses the first status write of every document to somebody else.
type losingFirst struct {
	*faulty
	mu   sync.Mutex
	lost map[string]bool
}

func (l *losingFirst) WriteStatus(ctx context.Context, p fleet.Proxy, f store.StatusFields) (fleet.Proxy, error) {
	l.mu.Lock()
	first := !l.lost[p.Name]
	l.lost[p.Name] = true
	l.mu.Unlock()
	if first {
		return p, store.ErrConflict
	}
	return l.faulty.WriteStatus(ctx, p, f)
}
