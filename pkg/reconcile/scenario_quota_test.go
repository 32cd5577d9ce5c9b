package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
)

func TestQuotaIsAskedForLikeABackOffWhileOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.InjectCreateFailures(100, provider.ErrQuotaExceeded)
	w.put("short", nil)
	w.put("well", map[string]any{"provider": "other"})
	w.run()
	w.tick(9)
	assert.LessOrEqual(t, w.main.Calls().Create, 4, "of ten ticks")
	assert.GreaterOrEqual(t, w.main.Calls().Create, 3)
	assert.Equal(t, "QuotaExceeded", w.condition("short", fleet.ConditionProvisioned).Reason)
	assert.Equal(t, fleet.PhaseRunning, w.get("well").Status.Phase)
}

func TestBackOffPerClass(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		promise  string
		class    string
		attempts int32
		jitter   float64
		atLeast  time.Duration
		want     time.Duration
	}{
		{"transient begins at 15 s", classTransient, 1, 0.5, 0, 15 * time.Second},
		{"give a quarter", classTransient, 1, 0, 0, 11250 * time.Millisecond},
		{"or take a quarter", classTransient, 1, 1, 0, 18750 * time.Millisecond},
		{"transient doubles", classTransient, 3, 0.5, 0, time.Minute},
		{"transient ends at 5 min", classTransient, 6, 0.5, 0, 5 * time.Minute},
		{"however often", classTransient, 1 << 30, 0.5, 0, 5 * time.Minute},
		{"a first failure that nobody counted", classTransient, 0, 0.5, 0, 15 * time.Second},
		{"quota begins at 1 min", classQuota, 1, 0, 0, time.Minute},
		{"quota doubles", classQuota, 4, 0, 0, 8 * time.Minute},
		{"quota ends at 30 min", classQuota, 6, 0, 0, 30 * time.Minute},
		{"quota is never early", classQuota, 2, 1, 0, 132 * time.Second},
		{"the cloud's wish counts", classTransient, 1, 0.5, time.Hour, time.Hour},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, row.want, backOff(row.class, row.attempts, row.jitter, row.atLeast))
		})
	}
}

func TestErrorsAreClassed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err      error
		want     string
		stockOut bool
	}{
		{&provider.Error{Class: provider.ErrQuotaExceeded, Reason: "ZONE_RESOURCE_POOL_EXHAUSTED", StockOut: true, Zone: "z"}, classQuota, true},
		{&provider.Error{Class: provider.ErrQuotaExceeded, Reason: "QUOTA_EXCEEDED"}, classQuota, false},
		{fmt.Errorf("create: %w", &provider.Error{Class: provider.ErrTransient, Reason: "rateLimitExceeded"}), classTransient, false},
		{&provider.Error{Class: provider.ErrPermanent}, classPermanent, false},
		{&provider.Error{Class: provider.ErrNotFound}, classNotFound, false},
		{fmt.Errorf("what is this"), classTransient, false},
	} {
		assert.Equal(t, row.want, className(row.err), "%v", row.err)
		_, out := provider.StockOutZone(row.err)
		assert.Equal(t, row.stockOut, out)
	}
}

func TestAnExhaustedZoneIsLeftForTheNextAndCoolsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.SetStockOut("r1-a")
	w.put("a", nil)
	w.run()
	require.Len(t, w.main.Instances(), 1, "in the same run")
	assert.Equal(t, "r1-b", w.main.Instances()[0].Zone)
	assert.Equal(t, w.main.Instances()[0].Name, w.get("a").Status.Instance.Name, "under the same name")
	assert.EqualValues(t, 1, w.get("a").Status.Instance.Incarnation)
	calls := w.main.Calls().Create
	w.put("b", nil)
	w.tick(1)
	assert.Equal(t, calls+1, w.main.Calls().Create, "others do not try the zone while it cools down")
	w.main.SetStockOut()
	w.tick(10)
	w.put("c", nil)
	w.tick(1)
	assert.Equal(t, "r1-a", w.get("c").Status.Instance.Zone, "and do again when it is over")
}

func TestAStockOutThatShowsLaterMovesTheSameIncarnation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.InjectLaunchFailures(1, provider.Error{Class: provider.ErrQuotaExceeded, Reason: "ZONE_RESOURCE_POOL_EXHAUSTED", StockOut: true})
	w.put("a", nil)
	w.run()
	w.tick(2)
	i := w.get("a").Status.Instance
	assert.Equal(t, "r1-b", i.Zone)
	assert.EqualValues(t, 1, i.Incarnation)
	assert.Equal(t, "Running", i.State)
}

func TestASingleExhaustedZoneIsNotRetriedHotly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.SetStockOut("r1-a")
	w.put("a", map[string]any{"placement": map[string]any{"region": "r1", "zone": "r1-a"}})
	w.run()
	w.tick(9)
	assert.LessOrEqual(t, w.main.Calls().Create, 4)
	assert.Equal(t, fleet.PhasePending, w.get("a").Status.Phase)
}

func TestLeftoversOfARefusedCreateAreTakenUpOrRemoved(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"taken up", "removed"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("a", nil)
			w.main.InjectLostReplies(mock.VerbCreate, 1) // the plane is told of a failure, and there is an instance
			w.run()
			require.Len(t, w.main.Instances(), 1)
			if then == "removed" {
				w.askDelete("a")
				w.tick(6)
				assert.False(t, w.exists("a"))
				assert.Empty(t, w.main.Instances())
				return
			}
			w.tick(3)
			assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase)
			assert.Len(t, w.main.Instances(), 1)
		})
	}
}

func TestAPermanentRefusalIsNotRetriedUntilTheSpecChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.InjectCreateFailures(1, provider.ErrPermanent)
	w.put("a", nil)
	w.run()
	w.tick(30)
	assert.Equal(t, 1, w.main.Calls().Create)
	assert.Equal(t, fleet.PhaseFailed, w.get("a").Status.Phase)
	assert.Contains(t, w.condition("a", fleet.ConditionProvisioned).Message, "FORBIDDEN")
	assert.Equal(t, fleet.GateFailed, w.entry("a").Gate)
	w.edit("a", map[string]any{"maxLeases": 7})
	w.tick(2)
	assert.Equal(t, 1, w.main.Calls().Create, "a change that needs no other instance is no reason")
	w.edit("a", map[string]any{"endpoint": map[string]any{"port": 3129}})
	w.tick(2)
	assert.Equal(t, 2, w.main.Calls().Create)
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase)
}

func TestTheCapIsNeverExceededNotEvenByReplacements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, capped(3))
	for n := range 5 {
		w.put(fmt.Sprint("p", n), nil)
	}
	w.up()
	assert.Len(t, w.main.Instances(), 3)
	assert.Equal(t, 2, w.last.Phases["Pending"])
	running := ""
	for n := range 5 {
		name := fmt.Sprint("p", n)
		if w.get(name).Status.Phase == fleet.PhaseRunning {
			running = name
			continue
		}
		assert.Equal(t, "ProviderFull", w.condition(name, fleet.ConditionProvisioned).Reason)
	}
	w.edit(running, map[string]any{"endpoint": map[string]any{"port": 3129}})
	for range 20 {
		w.tick(1)
		require.LessOrEqual(t, len(w.main.Instances()), 3)
	}
	p := w.get(running)
	assert.Equal(t, fleet.PhaseRunning, p.Status.Phase, "its place was kept for its successor")
	assert.EqualValues(t, 2, p.Status.Instance.Incarnation)
	assert.EqualValues(t, 3129, p.Status.Endpoint.Port)
	w.askDelete(running)
	for range 8 {
		w.tick(1)
		require.LessOrEqual(t, len(w.main.Instances()), 3)
	}
	assert.Equal(t, 3, w.last.Phases["Running"], "somebody else gets the place")
}

func TestALoweredCapDoesNotBlockItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, capped(3))
	w.main.InjectCreateFailures(3, provider.ErrTransient)
	for n := range 3 {
		w.put(fmt.Sprint("p", n), nil)
	}
	w.run()
	w.rec.Providers["main"] = Account{Provider: w.main, MaxInstances: 2}
	w.tick(4)
	assert.Equal(t, 2, w.last.Phases["Running"])
	assert.Len(t, w.main.Instances(), 2)
}
