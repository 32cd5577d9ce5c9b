package reconcile

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
)

func TestACreateWhoseReplyIsLostMakesOneInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.main.InjectLostReplies(mock.VerbCreate, 3)
	w.run()
	w.tick(3)
	assert.Equal(t, 1, w.main.Made())
	p := w.get("a")
	assert.Equal(t, w.main.Instances()[0].Name, p.Status.Instance.Name)
	assert.Equal(t, "Running", p.Status.Instance.State)
}

func TestAListingThatLagsNeverLeadsToASecondCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.SetListLag(5)
	w.put("a", nil)
	w.run()
	w.tick(5)
	assert.Equal(t, 1, w.main.Calls().Create, "the intent counts as an instance")
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase, "Get does not lag")
	w.tick(6)
	assert.Equal(t, 1, w.main.Made())
	assert.Len(t, w.main.Instances(), 1)
}

func TestTenOfTwelveAreMadeAtOnceWhenTheProviderTakesTenAndTwoInTheNextTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.SetCreateLimit(10, 50*time.Second)
	for n := range 12 {
		w.put(fmt.Sprintf("p%02d", n), nil)
	}
	s := w.run()
	assert.Len(t, w.main.Instances(), 10)
	assert.Equal(t, 2, s.Errors[classTransient])
	s = func() Summary { w.clock.Advance(time.Minute); return w.run() }()
	assert.Len(t, w.main.Instances(), 12)
	assert.Empty(t, s.Errors)
	w.tick(5)
	assert.Equal(t, 14, w.main.Calls().Create, "no error loop")
}

func TestForeignInstancesWithSimilarNamesAreNeitherCountedNorDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, capped(1))
	for _, i := range []provider.Instance{
		{Name: "proxy-aaaaaaaaaaaaaaaa"}, {Name: "proxy-bbbbbbbbbbbbbbbb", Owner: "other-team"}, {Name: "a"},
	} {
		i.CreateTime = start.Add(-time.Hour)
		require.True(t, w.main.Place(i))
	}
	w.put("a", nil)
	w.run()
	w.tick(40)
	assert.Len(t, w.main.Instances(), 4)
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase, "the cap counts our own")
	assert.Zero(t, w.last.Orphans)
	assert.Zero(t, w.main.Calls().Delete)
}

func TestTwoFleetsInOneProjectNeverTouchEachOther(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := newWorld(t, func(c *Config, _ *mock.Settings) {
		c.Owner, c.Database = "second-owner", "second"
		c.Providers["main"] = Account{Provider: a.main}
	})
	a.put("same-name", nil)
	b.put("same-name", nil)
	a.up()
	b.up()
	require.Len(t, a.main.Instances(), 2)
	b.clock.Advance(a.clock.Now().Sub(b.clock.Now()))
	b.askDelete("same-name")
	for range 40 {
		a.tick(1)
		b.tick(1)
	}
	left := a.main.Instances()
	require.Len(t, left, 1)
	assert.Equal(t, testOwner, left[0].Owner)
	assert.Equal(t, fleet.PhaseRunning, a.get("same-name").Status.Phase)
}

func TestAnInstanceWithoutADocumentIsDeletedAfterItsGraceAndASecondLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	orphan := provider.Instance{Name: "proxy-orphan", Owner: testOwner, UID: "nobody", CreateTime: w.clock.Now()}
	require.True(t, w.main.Place(orphan))
	s := w.run()
	assert.Equal(t, 1, s.Orphans)
	for range 14 {
		w.clock.Advance(time.Minute)
		s = w.run()
		require.Zero(t, s.Actions[didOrphan], "younger than the grace")
	}
	w.clock.Advance(time.Minute)
	s = w.run()
	assert.Equal(t, 1, s.Actions[didOrphan], "seen again after the grace")
	w.tick(2)
	assert.Zero(t, w.last.Orphans)
	assert.Len(t, w.main.Instances(), 1)
}

func TestAnOldInstanceIsNotSweptByTheFirstLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.True(t, w.main.Place(provider.Instance{Name: "proxy-orphan", Owner: testOwner, UID: "nobody", CreateTime: start.Add(-100 * time.Hour)}))
	s := w.run()
	assert.Equal(t, 1, s.Orphans)
	assert.Zero(t, s.Actions[didOrphan])
}

func TestSuspiciouslyManyOrphansAreFrozen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 4 {
		w.put(fmt.Sprint("p", n), nil)
	}
	w.up()
	for n := range 4 {
		w.store.Remove(fmt.Sprint("p", n))
	}
	w.tick(40)
	assert.True(t, w.last.OrphansFrozen)
	assert.Equal(t, 4, w.last.Orphans)
	assert.Len(t, w.main.Instances(), 4)
	assert.Zero(t, w.main.Calls().Delete)
}

func TestInstancesOnTheSecondPageAreSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 520
	for i := range n {
		w.put(fmt.Sprintf("p%03d", i), nil)
	}
	w.up()
	assert.Equal(t, n, w.main.Made())
	before := w.main.Calls()
	w.tick(2)
	after := w.main.Calls()
	assert.Equal(t, 2*2, after.ListPages-before.ListPages, "two pages a run")
	assert.Equal(t, before.Create, after.Create)
	assert.Equal(t, before.Get, after.Get)
}

func TestALaunchThatFailsLaterShowsTheCloudsReasonAndBacksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.main.InjectLaunchFailures(3, provider.Error{Class: provider.ErrQuotaExceeded, Reason: "IP_SPACE_EXHAUSTED", Err: errors.New("no addresses left in subnet")})
	w.put("a", nil)
	w.run()
	w.tick(1)
	c := w.condition("a", fleet.ConditionProvisioned)
	assert.False(t, c.Status)
	assert.Equal(t, "QuotaExceeded", c.Reason)
	assert.Contains(t, c.Message, "IP_SPACE_EXHAUSTED")
	assert.Contains(t, c.Message, "no addresses left in subnet")
	w.tick(3)
	assert.Equal(t, 2, w.main.Calls().Create, "one minute, then two")
	w.tick(20)
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase)
	assert.Nil(t, w.get("a").Status.Retry)
}

func TestAnExistingNameIsAdoptedWhenItIsOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	uid := fleet.UID(testDatabase, "proxies/a", w.get("a").CreateTime)
	require.True(t, w.main.Place(provider.Instance{Name: provider.InstanceName(uid, 1), Zone: "r1-b", Owner: testOwner, UID: uid, Incarnation: 1, SpecHash: "an-older-spec", CreateTime: start.Add(-time.Hour)}))
	w.main.SetListLag(3)
	w.run()
	w.tick(2)
	p := w.get("a")
	assert.Equal(t, provider.InstanceName(uid, 1), p.Status.Instance.Name)
	assert.Equal(t, "an-older-spec", p.Status.Instance.SpecHash)
	assert.Equal(t, "r1-b", p.Status.Instance.Zone)
	w.main.SetListLag(0)
	w.tick(8)
	assert.Len(t, alive(w.main), 1, "and replaced by one of the current spec")
	assert.EqualValues(t, 2, w.get("a").Status.Instance.Incarnation)
}

func TestAnExistingNameOfSomebodyElseIsAConflictAndNoDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	uid := fleet.UID(testDatabase, "proxies/a", w.get("a").CreateTime)
	name := provider.InstanceName(uid, 1)
	require.True(t, w.main.Place(provider.Instance{Name: name, Owner: "other-team"}))
	w.run()
	w.tick(5)
	assert.Equal(t, "NameConflict", w.condition("a", fleet.ConditionProvisioned).Reason)
	assert.Equal(t, 1, w.main.Calls().Create)
	w.edit("a", map[string]any{"endpoint": map[string]any{"port": 3129}})
	w.tick(3)
	assert.Equal(t, fleet.PhaseRunning, w.get("a").Status.Phase, "another spec gets another name")
	w.askDelete("a")
	w.tick(5)
	assert.False(t, w.exists("a"))
	assert.Len(t, w.main.Instances(), 1, "theirs is still there")
}

func TestACrashAfterTheCreateLeadsToTheSameInstance(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"after the intent", "after the create"} {
		t.Run(dies, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("a", nil)
			crash := &crashing{Store: w.store, after: dies}
			r := New(Config{Store: crash, Providers: map[string]Account{"main": {Provider: crashingCloud{w.main, crash}}, "other": {Provider: w.other}}, Owner: testOwner, Database: testDatabase, Now: w.clock.Now})
			_, _ = r.Run(t.Context(), w.clock.Now())
			require.True(t, crash.dead())
			intent := w.get("a").Status.Instance
			require.NotNil(t, intent, "the intent was written before")
			w.clock.Advance(4 * time.Minute) // the dead run's lock
			w.up()
			assert.Equal(t, 1, w.main.Made())
			assert.Equal(t, intent.Name, w.get("a").Status.Instance.Name)
			assert.Equal(t, "Running", w.get("a").Status.Instance.State)
		})
	}
}

func TestOfTwoRunsAtOnceOneCreatesAndTheOtherSaysThatItIsLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 20 {
		w.put(fmt.Sprint("p", n), nil)
	}
	release := w.main.Stall()
	var wg sync.WaitGroup
	summaries := make([]Summary, 2)
	for n := range 2 {
		wg.Go(func() {
			var err error
			summaries[n], err = w.rec.Run(t.Context(), w.clock.Now())
			assert.NoError(t, err)
			if summaries[n].Skipped != "" {
				release() // the other one goes on when this one has given up
			}
		})
	}
	wg.Wait()
	assert.ElementsMatch(t, []string{"", "locked"}, []string{summaries[0].Skipped, summaries[1].Skipped})
	assert.Equal(t, 20, w.main.Made())
	assert.Equal(t, 20, w.main.Calls().Create)
}

func TestARunThatLostItsLockChangesNothingThatTheOtherOneWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	slow := w.main.Stall() // the first run hangs in its listing
	done := make(chan Summary)
	go func() {
		s, _ := w.rec.Run(t.Context(), w.clock.Now())
		done <- s
	}()
	require.Eventually(t, func() bool { return w.main.Calls().List == 1 }, 5*time.Second, time.Millisecond)
	w.clock.Advance(5 * time.Minute) // its lock and its time are over
	second := New(w.rec.Config)
	second.Providers = map[string]Account{"main": {Provider: w.other}, "other": {Provider: w.other}}
	_, err := second.Run(t.Context(), w.clock.Now())
	require.NoError(t, err)
	slow()
	s := <-done
	assert.True(t, s.OutOfTime)
	assert.Zero(t, w.main.Made(), "the first run has no time left and creates nothing")
	assert.Equal(t, 1, w.other.Made())
	run, err := w.store.GetRun(t.Context())
	require.NoError(t, err)
	assert.Empty(t, run.Holder)
	assert.False(t, run.EndTime.Before(start.Add(5*time.Minute)), "the second run's record stays")
}
