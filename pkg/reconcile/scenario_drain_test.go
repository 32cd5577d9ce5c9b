package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
)

func TestDeletingAnAbsentInstanceIsSuccessAndTheDocumentGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	w.main.Vanish(w.main.Instances()[0].Name)
	w.askDelete("a")
	w.tick(3)
	assert.False(t, w.exists("a"))
	assert.Zero(t, w.main.Calls().Delete)
}

func TestADeleteThatFailsIsNotTakenForDone(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]error{"403": provider.ErrPermanent, "500": provider.ErrTransient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("a", nil)
			w.up()
			w.main.InjectFailures(mock.VerbDelete, 2, class)
			w.askDelete("a")
			w.tick(2)
			assert.Contains(t, w.events("a"), EventDeleteFailed)
			require.Len(t, w.main.Instances(), 1)
			assert.True(t, w.exists("a"))
			w.tick(8)
			assert.False(t, w.exists("a"), "it is tried again")
			assert.Empty(t, w.main.Instances())
			assert.Equal(t, 3, w.main.Calls().Delete)
		})
	}
}

func TestLeasesHoldUpADeleteUntilTheyEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	for n := range 3 {
		w.lease("a", n, 4*time.Minute)
	}
	w.askDelete("a")
	w.tick(1)
	e := w.entry("a")
	assert.Equal(t, fleet.GateDraining, e.Gate, "no new leases")
	assert.False(t, e.Ready())
	assert.Equal(t, w.clock.Now().Add(10*time.Minute), e.DrainDeadline)
	assert.Equal(t, fleet.PhaseDraining, w.get("a").Status.Phase)
	w.tick(2)
	assert.Len(t, alive(w.main), 1, "the instance stays")
	w.tick(4)
	assert.False(t, w.exists("a"))
	assert.Empty(t, w.main.Instances())
}

func TestPastTheDrainLimitTheInstanceGoesAndTheSlotsWithTheDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	for n := range 3 {
		w.lease("a", n, time.Hour)
	}
	w.askDelete("a")
	w.tick(10)
	assert.Len(t, alive(w.main), 1)
	w.tick(4)
	assert.False(t, w.exists("a"))
	assert.Empty(t, w.main.Instances())
	slots, err := w.store.ProxySlots(t.Context(), "a")
	require.NoError(t, err)
	assert.Empty(t, slots)
	shards, err := w.store.ReadCatalog(t.Context())
	require.NoError(t, err)
	assert.NotContains(t, places(shards), "a")
}

func TestSlotsAreCountedNoSoonerThanTenSecondsAfterTheCatalogWasClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	w.askDelete("a")
	w.run() // closes the catalog
	for range 9 {
		w.clock.Advance(time.Second)
		w.run()
		require.Len(t, alive(w.main), 1, "a lease function may grant by an older copy of the catalog")
	}
	late := w.lease("a", 0, time.Minute) // and one did
	w.clock.Advance(time.Second)
	w.run()
	require.Len(t, alive(w.main), 1)
	require.NoError(t, w.store.DeleteSlot(t.Context(), late))
	w.clock.Advance(time.Second)
	w.run()
	assert.Empty(t, alive(w.main))
}

func TestAllAgeOutAtOnceAndServiceNeverDropsBelowFourOfFive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 5 {
		w.put(fmt.Sprint("p", n), map[string]any{"lifecycle": map[string]any{"maxAge": "30m"}})
	}
	w.up()
	replaced := func() bool {
		for n := range 5 {
			if i := w.get(fmt.Sprint("p", n)).Status.Instance; i == nil || i.Incarnation < 2 {
				return false
			}
		}
		return true
	}
	ticks := 0
	for ; !replaced(); ticks++ {
		require.Less(t, ticks, 75, "replaced within so many ticks")
		w.tick(1)
		ready := 0
		for n := range 5 {
			if w.entry(fmt.Sprint("p", n)).Ready() {
				ready++
			}
		}
		require.GreaterOrEqual(t, ready, 4)
		require.LessOrEqual(t, len(w.main.Instances()), 6, "one at a time")
	}
	t.Logf("all replaced after %d ticks", ticks)
}

func TestWhenTwoFifthsFailAtOnceReplacementsAreCappedAndMoreIsAMeltDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 10 {
		w.put(fmt.Sprint("p", n), nil)
	}
	w.up()
	sick := map[string]bool{"p0": true, "p1": true, "p2": true, "p3": true}
	w.probe(sick)
	for range 11 {
		w.clock.Advance(time.Minute)
		w.run()
	}
	assert.Empty(t, w.last.MeltDown)
	assert.Equal(t, 1, w.last.Phases["Replacing"], "four of ten: one at a time")
	assert.Equal(t, 11, w.main.Made())

	v := newWorld(t)
	for n := range 10 {
		v.put(fmt.Sprint("p", n), nil)
	}
	v.up()
	sick["p4"] = true
	v.probe(sick)
	for range 30 {
		v.clock.Advance(time.Minute)
		v.run()
	}
	assert.Equal(t, []string{"main"}, v.last.MeltDown, "five of ten: it is not the instances")
	assert.Equal(t, 10, v.main.Made())
	assert.Equal(t, 10, v.last.Phases["Running"])
}

func TestAFleetThatGrowsLeavesTheOldOnesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 10 {
		w.put(fmt.Sprintf("p%02d", n), nil)
	}
	w.up()
	before := w.main.Instances()
	for n := 10; n < 30; n++ {
		w.put(fmt.Sprintf("p%02d", n), nil)
	}
	w.tick(5)
	after := w.main.Instances()
	assert.Len(t, after, 30)
	for _, i := range before {
		assert.True(t, slices.Contains(after, i), "%s was touched", i.Name)
	}
	assert.Equal(t, 30, w.last.Phases["Running"])
}

func TestAReplacementMakesBeforeItBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	w.lease("a", 0, 6*time.Minute)
	w.edit("a", map[string]any{"endpoint": map[string]any{"port": 3129}})
	w.tick(2)
	assert.EqualValues(t, 1, w.entry("a").Incarnation, "the old one serves while its successor comes up")
	w.tick(1)
	e := w.entry("a")
	assert.EqualValues(t, 2, e.Incarnation)
	assert.EqualValues(t, 3129, e.Port)
	assert.True(t, e.Ready(), "at once")
	assert.EqualValues(t, 2, e.DrainingBelow)
	assert.Equal(t, w.clock.Now().Add(10*time.Minute), e.DrainDeadline)
	w.tick(2)
	assert.Len(t, alive(w.main), 2, "the lease on the old one is not cut")
	w.tick(3)
	assert.Len(t, alive(w.main), 1)
	w.tick(2)
	assert.EqualValues(t, 2, w.get("a").Status.Instance.Incarnation)
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase)
	assert.Subset(t, w.events("a"), []string{EventCreating, EventRunning, EventReplacing, EventSwitched, EventDraining, EventDeleting, EventDeleted})
}

func TestADocumentThatVanishedClosesItsEntryAndKeepsItsLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.put("b", nil)
	w.up()
	w.lease("a", 0, 9*time.Minute)
	w.store.Remove("a")
	w.tick(1)
	e := w.entry("a")
	assert.Equal(t, fleet.GateDraining, e.Gate)
	assert.Equal(t, w.clock.Now().Add(vanishedDrain), e.DrainDeadline)
	w.tick(9)
	assert.Len(t, alive(w.main), 2, "its lease may last so long")
	w.tick(8)
	assert.Len(t, alive(w.main), 1, "then it is an orphan like any other")
	shards, err := w.store.ReadCatalog(t.Context())
	require.NoError(t, err)
	assert.NotContains(t, places(shards), "a")
}

func TestALostStatusFindsItsInstanceAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	for range 2 { // two incarnations on
		w.main.Vanish(w.get("a").Status.Instance.Name)
		w.tick(3)
	}
	before := w.get("a").Status
	require.EqualValues(t, 3, before.Instance.Incarnation)
	w.main.SetListLag(3) // listings will not help
	w.store.WipeStatus("a")
	w.tick(1)
	after := w.get("a").Status
	assert.Equal(t, before.UID, after.UID)
	assert.Equal(t, before.Instance.Name, after.Instance.Name)
	assert.EqualValues(t, 3, after.Incarnation)
	assert.Equal(t, 3, w.main.Made())
	assert.True(t, w.entry("a").Ready(), "leases go on meanwhile")
	assert.Equal(t, EventAdopted, w.events("a")[0])
}

func TestAStatusCopiedFromAnotherDocumentIsNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	w.clock.Advance(time.Second)
	w.put("copy", nil)
	p := w.get("copy")
	p.Status = w.get("a").Status
	_, err := w.store.WriteStatus(t.Context(), p, 3)
	require.NoError(t, err)
	w.tick(3)
	assert.Len(t, w.main.Instances(), 2)
	assert.NotEqual(t, w.get("a").Status.Instance.Name, w.get("copy").Status.Instance.Name)
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase)
	assert.Equal(t, fleet.PhaseRunning, w.get("copy").Status.Phase)
}

func TestAnInstanceWithAPrivateAddressOnlyIsPendingAndNotProbed(t *testing.T) {
	t.Parallel()
	prober := &recordingProber{}
	w := newWorld(t, func(c *Config, _ *mock.Settings) { c.Prober = prober })
	w.rec.Providers["main"] = Account{Provider: privateCloud{w.main}}
	w.put("a", nil)
	w.up()
	w.tick(2)
	c := w.condition("a", fleet.ConditionProvisioned)
	assert.False(t, c.Status)
	assert.Equal(t, "NoAddress", c.Reason)
	assert.Equal(t, fleet.GatePending, w.entry("a").Gate)
	assert.Empty(t, prober.all())
	assert.Len(t, w.main.Instances(), 1, "another one would have none either")
	w.rec.Providers["main"] = Account{Provider: w.main}
	w.tick(2)
	assert.Len(t, prober.all(), 1)
}

func TestOneMalformedDocumentAmongAHundredStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 99 {
		w.put(fmt.Sprintf("p%02d", n), map[string]any{"provider": []string{"main", "other"}[n%2]})
	}
	w.put("bad", nil)
	w.up()
	bad := w.get("bad").Status.Instance.Name
	w.store.PutRaw("bad", map[string]any{"spec": map[string]any{"mode": "Managed", "provider": 7, "maxLeases": "many"}, "surprise": true})
	s := w.run()
	assert.Empty(t, s.Errors)
	w.tick(20)
	assert.Equal(t, 99, w.last.Ready)
	c := w.condition("bad", fleet.ConditionAccepted)
	assert.False(t, c.Status)
	assert.Equal(t, "InvalidSpec", c.Reason)
	for _, what := range []string{"spec.provider", "spec.maxLeases", "surprise"} {
		assert.Contains(t, c.Message, what)
	}
	assert.Equal(t, fleet.GateRejected, w.entry("bad").Gate)
	assert.Zero(t, w.last.Orphans, "its instance is not an orphan")
	assert.True(t, slices.ContainsFunc(w.main.Instances(), func(i provider.Instance) bool { return i.Name == bad }))
	w.store.PutRaw("bad", map[string]any{"spec": spec(nil)})
	w.tick(2)
	assert.Equal(t, 100, w.last.Ready, "mended, it goes on with the same instance")
	assert.Equal(t, bad, w.get("bad").Status.Instance.Name)
}

func TestImmutableFieldsAreJudgedByWhatWasAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	w.edit("a", map[string]any{"provider": "other"})
	w.tick(3)
	c := w.condition("a", fleet.ConditionAccepted)
	assert.False(t, c.Status)
	assert.Contains(t, c.Message, "spec.provider")
	assert.Len(t, w.main.Instances(), 1)
	assert.Empty(t, w.other.Instances())
	w.askDelete("a")
	w.tick(4)
	assert.False(t, w.exists("a"), "it can be deleted as it is")
	assert.Empty(t, w.main.Instances(), "at the provider that it was accepted for")
}

func TestAPausedProxyIsLeftAloneAndItsDeletionIsNot(t *testing.T) {
	t.Parallel()
	prober := &recordingProber{}
	w := newWorld(t, func(c *Config, _ *mock.Settings) { c.Prober = prober })
	w.put("a", nil)
	w.up()
	calls := w.main.Calls()
	w.edit("a", map[string]any{"paused": true, "endpoint": map[string]any{"port": 3129}})
	w.main.Preempt(w.get("a").Status.Instance.Name)
	w.tick(5)
	after := w.main.Calls()
	assert.Equal(t, []int{calls.Create, calls.Get, calls.Delete}, []int{after.Create, after.Get, after.Delete}, "no cloud call")
	assert.Equal(t, fleet.GatePaused, w.entry("a").Gate)
	assert.NotEmpty(t, prober.last(), "probes go on")
	w.edit("a", map[string]any{"paused": false})
	w.tick(3)
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase)
	w.edit("a", map[string]any{"paused": true})
	w.askDelete("a")
	w.tick(4)
	assert.False(t, w.exists("a"))
}
