package reconcile

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

func live(ns ...int) *[]store.Slot {
	out := []store.Slot{}
	for _, n := range ns {
		out = append(out, store.Slot{Proxy: "p", N: n, ExpireTime: start.Add(time.Minute)})
	}
	return &out
}

func TestCapacityNeverLetsMoreLeasesLiveThanAllowed(t *testing.T) {
	t.Parallel()
	old := func(capacity, ceiling int32, ago time.Duration) *fleet.Entry {
		return &fleet.Entry{Capacity: capacity, Ceiling: ceiling, NarrowTime: start.Add(-ago)}
	}
	for _, row := range []struct {
		promise           string
		max               int32
		old               *fleet.Entry
		slots             *[]store.Slot
		needs             bool
		capacity, ceiling int32
	}{
		{"at rest nothing is looked up", 5, old(5, 5, 0), nil, false, 5, 5},
		{"more room is given at once", 9, old(5, 5, 0), nil, false, 9, 9},
		{"a cut closes it until nobody grants by the old entry", 2, old(5, 5, time.Hour), nil, false, 0, 5},
		{"for ten seconds", 2, old(0, 5, 9*time.Second), nil, false, 0, 5},
		{"then the live leases are counted: none", 2, old(0, 5, 10*time.Second), live(), true, 2, 2},
		{"those above count", 2, old(0, 5, 10*time.Second), live(3), true, 1, 4},
		{"so do those below that would remain", 2, old(0, 5, 10*time.Second), live(1, 2), true, 0, 3},
		{"four live and two allowed: no new one", 2, old(0, 5, 10*time.Second), live(0, 1, 2, 3), true, 0, 4},
		{"the lowest slots stay usable", 4, old(0, 9, 10*time.Second), live(0, 1, 8), true, 3, 9},
		{"an ended lease counts no more", 2, old(0, 5, 10*time.Second), &[]store.Slot{{N: 4, ExpireTime: start.Add(-3 * time.Second)}}, true, 2, 2},
		{"an end within the skew does", 2, old(0, 5, 10*time.Second), &[]store.Slot{{N: 4, ExpireTime: start.Add(-time.Second)}}, true, 1, 5},
		{"what could not be read changes nothing", 2, old(1, 5, time.Hour), nil, true, 1, 5},
		{"a lost entry is counted from the slots", 5, nil, live(0, 1), true, 5, 5},
		{"with leases from before a cut", 2, nil, live(0, 4), true, 1, 5},
		{"and closed when they cannot be read", 5, nil, nil, true, 0, 1000},
		{"never leased", 0, old(0, 0, 0), nil, false, 0, 0},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, row.needs, needsSlots(row.max, row.old, start))
			capacity, ceiling := capacityOf(row.max, row.old, row.slots, start)
			assert.Equal(t, row.capacity, capacity, "capacity")
			assert.Equal(t, row.ceiling, ceiling, "ceiling")
		})
	}
}

func TestALoweredMaxLeasesRevokesNothingAndGrantsNothingUntilFewerAreLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	for n := range 4 {
		w.lease("a", n, time.Duration(n+3)*time.Minute)
	}
	w.edit("a", map[string]any{"maxLeases": 2})
	for minute := range 8 {
		w.tick(1)
		live := max(0, min(4, 5-minute-1)) // lease n ends in the minute n+3
		e := w.entry("a")
		require.LessOrEqual(t, int(e.Capacity)+max(0, live-int(e.Capacity)), max(live, 2), "minute %d: %+v", minute, e)
		if live >= 2 {
			require.Zero(t, e.Capacity, "minute %d", minute)
		}
		slots, err := w.store.ProxySlots(t.Context(), "a")
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(slots), live, "none is revoked")
	}
	e := w.entry("a")
	assert.EqualValues(t, 2, e.Capacity)
	assert.EqualValues(t, 2, e.Ceiling)
}

func TestAnExplicitZeroIsNeverLeasedAndNoneMeansFive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("never", map[string]any{"maxLeases": 0})
	w.put("five", nil)
	w.up()
	assert.Equal(t, fleet.GateDisabled, w.entry("never").Gate)
	assert.EqualValues(t, 0, w.entry("never").Capacity)
	assert.Equal(t, fleet.GateOpen, w.entry("five").Gate)
	assert.EqualValues(t, 5, w.entry("five").Capacity)
}

func TestTheEntryOfAProxySaysWhatLeasesNeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.store.CreateProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"pool": "news"}, Spec: spec(map[string]any{
		"endpoint": map[string]any{"port": 8080, "credentialsSecretRef": map[string]any{"name": "auth", "key": "k"}},
	})})
	require.NoError(t, err)
	w.run()
	e := w.entry("a")
	assert.Equal(t, fleet.GatePending, e.Gate, "all proxies are in the catalog, so that a refusal can say why")
	assert.NotEmpty(t, e.GateReason)
	w.tick(2)
	e = w.entry("a")
	e.NarrowTime = time.Time{}
	since := e.Verdict.Since
	assert.Equal(t, fleet.Entry{
		Host: "127.0.0.1", Port: 8080, Incarnation: 1, Labels: map[string]string{"pool": "news"}, Mode: fleet.Managed, Provider: "main", Region: "r1",
		Credentials: &fleet.SecretRef{Name: "auth", Key: "k"}, MaxLeases: 5, Capacity: 5, Ceiling: 5,
		Verdict: fleet.Verdict{Healthy: true, Outcome: fleet.OutcomeOK, Incarnation: 1, Since: since},
	}, e)
}

func TestAVerdictIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", nil)
	w.up()
	w.tick(1)
	flips := 0
	f.before["WriteShard"] = func() { // health flips the verdict in the moment between reading and writing
		if flips++; flips == 1 {
			require.NoError(t, w.store.SetVerdict(t.Context(), 0, "a", fleet.Verdict{Outcome: fleet.OutcomeRefused, Incarnation: 1, Since: w.clock.Now()}))
			require.NoError(t, w.store.SetQuarantine(t.Context(), 0, "a", "shop.example", w.clock.Now().Add(time.Hour)))
		}
	}
	w.edit("a", map[string]any{"maxLeases": 6})
	w.run()
	e := w.entry("a")
	assert.EqualValues(t, 6, e.Capacity)
	assert.False(t, e.Verdict.Healthy)
	assert.Equal(t, fleet.OutcomeRefused, e.Verdict.Outcome)
	assert.Contains(t, e.Quarantine, "shop.example")
	assert.Equal(t, 2, flips, "the write was conditional")
}

func TestAVerdictThatTheCatalogWasNotToldIsMadeUpFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	p := w.get("a")
	p.Status.Health = verdictOn(p.Status.Health, 1, true, w.clock.Now())
	p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionHealthy, Reason: "Refused"}, w.clock.Now())
	_, err := w.store.WriteStatus(t.Context(), p, store.HealthFields) // and health dies before it tells
	require.NoError(t, err)
	w.run()
	assert.False(t, w.entry("a").Verdict.Healthy)
}

func TestAVerdictBelongsToItsInstance(t *testing.T) {
	t.Parallel()
	now := start
	p := viewOf(serving(2)).Proxy
	e := fleet.Entry{Host: "192.0.2.1", Port: 3128, Incarnation: 2}
	for _, row := range []struct {
		promise string
		old     fleet.Entry
		healthy bool
	}{
		{"the same instance keeps its verdict", fleet.Entry{Host: "192.0.2.1", Port: 3128, Incarnation: 2, Verdict: fleet.Verdict{Incarnation: 2, Since: now}}, false},
		{"another incarnation's is rebuilt", fleet.Entry{Host: "192.0.2.1", Port: 3128, Incarnation: 1, Verdict: fleet.Verdict{Incarnation: 1, Since: now}}, true},
		{"another address's is rebuilt", fleet.Entry{Host: "192.0.2.9", Port: 3128, Incarnation: 2, Verdict: fleet.Verdict{Incarnation: 2, Since: now}}, true},
		{"a missing one is rebuilt", fleet.Entry{Host: "192.0.2.1", Port: 3128, Incarnation: 2}, true},
	} {
		assert.Equal(t, row.healthy, verdictOf(p, e, &row.old).Healthy, row.promise)
	}
	assert.True(t, verdictOf(p, e, nil).Healthy)
	assert.Equal(t, fleet.Verdict{}, verdictOf(p, fleet.Entry{}, nil), "without an address there is none")
}

func TestALostCatalogIsRebuilt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 30 {
		w.put(fmt.Sprintf("p%02d", n), nil)
	}
	w.up()
	w.tick(1)
	w.lease("p07", 3, time.Hour)
	before := w.entry("p07")
	shards, err := w.store.ReadCatalog(t.Context())
	require.NoError(t, err)
	var all []string
	for name := range shards[0].Entries {
		all = append(all, name)
	}
	_, err = w.store.WriteShard(t.Context(), shards[0], nil, all)
	require.NoError(t, err)
	w.run()
	after := w.entry("p07")
	after.NarrowTime = before.NarrowTime
	assert.True(t, sameEntry(before, after), "%+v\n%+v", before, after)
	assert.True(t, after.Ready())
}

func TestExpiredQuarantineIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", nil)
	w.up()
	require.NoError(t, w.store.SetQuarantine(t.Context(), 0, "a", "shop.example", w.clock.Now().Add(90*time.Second)))
	w.tick(1)
	assert.Len(t, w.entry("a").Quarantine, 1)
	w.tick(1)
	assert.Empty(t, w.entry("a").Quarantine)
	w.tick(1)
	assert.Empty(t, w.last.Actions)
}

func TestEntriesAreSpreadOverShards(t *testing.T) {
	t.Parallel()
	entry := func(labels int) fleet.Entry {
		e := fleet.Entry{Host: "192.0.2.1", Port: 3128}
		for n := range labels {
			if e.Labels == nil {
				e.Labels = map[string]string{}
			}
			e.Labels[fmt.Sprintf("label-%060d", n)] = fmt.Sprintf("%063d", n)
		}
		return e
	}
	apply := func(shards []store.Shard, todo map[int]*change) []store.Shard {
		by := map[int]store.Shard{}
		for _, sh := range shards {
			sh.Entries = maps.Clone(sh.Entries)
			by[sh.ID] = sh
		}
		for id, c := range todo {
			sh, ok := by[id]
			if !ok {
				sh = store.Shard{ID: id, Entries: map[string]fleet.Entry{}}
			}
			maps.Copy(sh.Entries, c.put)
			for _, name := range c.drop {
				delete(sh.Entries, name)
			}
			by[id] = sh
		}
		var out []store.Shard
		for id := range 100 {
			if sh, ok := by[id]; ok {
				out = append(out, sh)
			}
		}
		return out
	}
	want := map[string]fleet.Entry{}
	for n := range 2500 {
		want[fmt.Sprintf("p%04d", n)] = entry(0)
	}
	shards := apply(nil, changes(nil, want))
	require.Len(t, shards, 3, "a thousand to a shard")
	for _, sh := range shards {
		assert.LessOrEqual(t, len(sh.Entries), store.MaxShardEntries)
	}
	assert.Empty(t, changes(shards, want), "at rest nothing is written")

	delete(want, "p0007")
	want["p9999"] = entry(0)
	todo := changes(shards, want)
	moved := 0
	for _, c := range todo {
		moved += len(c.put) + len(c.drop)
	}
	assert.Equal(t, 2, moved, "only what differs")

	for n := range 900 {
		want[fmt.Sprintf("p%04d", n+1000)] = entry(32) // some 4 KB each
	}
	shards = apply(shards, changes(shards, want))
	seen := map[string]int{}
	for _, sh := range shards {
		bytes := 0
		for name, e := range sh.Entries {
			bytes += sizeOf(e)
			seen[name]++
		}
		assert.LessOrEqual(t, bytes, maxShardBytes, "a document holds 1 MiB")
	}
	assert.Len(t, seen, len(want))
	for name, n := range seen {
		require.Equal(t, 1, n, "%s is in one shard", name)
	}
	assert.Empty(t, changes(shards, want))

	doubled := append(shards, store.Shard{ID: 50, Entries: map[string]fleet.Entry{"p0001": entry(0), "stranger": entry(0)}})
	todo = changes(doubled, want)
	assert.ElementsMatch(t, []string{"p0001", "stranger"}, todo[50].drop)
}

func TestExpiredSlotsAreDeletedFiveHundredARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 620 {
		_, err := w.store.CreateSlot(t.Context(), store.Slot{Proxy: fmt.Sprintf("p%03d", n), LeaseID: "x", ExpireTime: start.Add(-3 * time.Second)}, nil)
		require.NoError(t, err)
	}
	for n, ends := range []time.Duration{-2 * time.Second, -time.Second, time.Hour} {
		_, err := w.store.CreateSlot(t.Context(), store.Slot{Proxy: "live", N: n, LeaseID: "x", ExpireTime: start.Add(ends)}, nil)
		require.NoError(t, err)
	}
	assert.Equal(t, 500, w.run().Actions[didExpire])
	assert.Equal(t, 120, w.run().Actions[didExpire])
	assert.Zero(t, w.run().Actions[didExpire], "clocks may differ by two seconds")
	left, err := w.store.ProxySlots(t.Context(), "live")
	require.NoError(t, err)
	assert.Len(t, left, 3)
}

func TestASlotThatIsTakenOverWhileItIsDeletedStays(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	s, err := w.store.CreateSlot(t.Context(), store.Slot{Proxy: "a", LeaseID: "old", ExpireTime: start.Add(-time.Minute)}, nil)
	require.NoError(t, err)
	f.before["DeleteSlot"] = func() {
		s.LeaseID, s.ExpireTime, s.Fence = "new", start.Add(time.Hour), 0
		_, err := w.store.ReplaceSlot(context.Background(), s, nil)
		assert.NoError(t, err)
	}
	sum := w.run()
	assert.Empty(t, sum.Errors)
	kept, err := w.store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	assert.Equal(t, "new", kept.LeaseID)
}

func TestEntriesAreComparedWhole(t *testing.T) {
	t.Parallel()
	base := func() fleet.Entry {
		return fleet.Entry{Host: "h", Labels: map[string]string{"a": "b"}, Credentials: &fleet.SecretRef{Name: "s"}, Quarantine: map[string]time.Time{"x": start}, DrainDeadline: start}
	}
	assert.True(t, sameEntry(base(), base()))
	local := base()
	local.DrainDeadline = start.In(time.FixedZone("x", 3600))
	assert.True(t, sameEntry(base(), local))
	empty := base()
	empty.Labels = map[string]string{}
	none := base()
	none.Labels = nil
	assert.True(t, sameEntry(empty, none))
	for n, change := range []func(*fleet.Entry){
		func(e *fleet.Entry) { e.Host = "" }, func(e *fleet.Entry) { e.Port = 1 }, func(e *fleet.Entry) { e.Incarnation = 1 },
		func(e *fleet.Entry) { e.Labels = nil }, func(e *fleet.Entry) { e.Mode = fleet.External }, func(e *fleet.Entry) { e.Provider = "p" },
		func(e *fleet.Entry) { e.Region = "r" }, func(e *fleet.Entry) { e.Credentials = nil }, func(e *fleet.Entry) { e.Credentials = &fleet.SecretRef{Name: "t"} },
		func(e *fleet.Entry) { e.Gate = fleet.GatePaused }, func(e *fleet.Entry) { e.GateReason = "x" }, func(e *fleet.Entry) { e.MaxLeases = 1 },
		func(e *fleet.Entry) { e.Capacity = 1 }, func(e *fleet.Entry) { e.Ceiling = 1 }, func(e *fleet.Entry) { e.DrainDeadline = start.Add(1000) },
		func(e *fleet.Entry) { e.DrainingBelow = 1 }, func(e *fleet.Entry) { e.NarrowTime = start }, func(e *fleet.Entry) { e.Verdict.Healthy = true },
		func(e *fleet.Entry) { e.Verdict.Outcome = "x" }, func(e *fleet.Entry) { e.Verdict.Incarnation = 1 }, func(e *fleet.Entry) { e.Verdict.Since = start },
		func(e *fleet.Entry) { e.Quarantine = nil }, func(e *fleet.Entry) { e.Quarantine["x"] = start.Add(1000) },
	} {
		e := base()
		change(&e)
		assert.False(t, sameEntry(base(), e), "change %d", n)
	}
}

func TestLeasesOnOlderInstancesEndWhenTheyShould(t *testing.T) {
	t.Parallel()
	deadline := start.Add(9 * time.Minute)
	switched := viewOf(switchedTo(3)).Proxy
	switched.Status.Drain.Deadline = deadline
	e := entryOf(switched, "", nil, live(), start)
	assert.EqualValues(t, 3, e.DrainingBelow)
	assert.Equal(t, deadline, e.DrainDeadline)

	done := viewOf(serving(3)).Proxy
	after := entryOf(done, "", &e, nil, start.Add(time.Minute))
	assert.Equal(t, deadline, after.DrainDeadline, "it stays what it was")
	fresh := entryOf(done, "", nil, live(), start)
	assert.Equal(t, done.Status.Endpoint.Since, fresh.DrainDeadline, "where nothing is known, they have ended with the switch")

	lost := viewOf(instance(4, "")).Proxy
	gone := entryOf(lost, "", &after, nil, start.Add(time.Hour))
	assert.Equal(t, fleet.GatePending, gone.Gate)
	assert.EqualValues(t, 4, gone.DrainingBelow, "leases on a lost instance have ended")
	assert.Equal(t, start.Add(time.Hour), gone.DrainDeadline)
	assert.True(t, sameEntry(gone, entryOf(lost, "", &gone, nil, start.Add(2*time.Hour))), "and nothing is written again")

	first := entryOf(viewOf(serving(1)).Proxy, "", nil, live(), start)
	assert.Zero(t, first.DrainingBelow)
	assert.Zero(t, first.DrainDeadline)
}

func TestARejectedDocumentWithoutAnEntryIsCountedWhenItIsMended(t *testing.T) {
	t.Parallel()
	p := viewOf(serving(1)).Proxy
	e := entryOf(p, "spec: must be set", nil, nil, start)
	assert.Equal(t, fleet.GateRejected, e.Gate)
	assert.Equal(t, "spec: must be set", e.GateReason)
	assert.Zero(t, e.Capacity)
	assert.True(t, needsSlots(5, &e, start.Add(time.Hour)))
	mended := entryOf(p, "", &e, live(0, 6), start.Add(30*time.Second))
	assert.EqualValues(t, 4, mended.Capacity)
}

func TestIdentitiesAreKeptApart(t *testing.T) {
	t.Parallel()
	derived := func(name string, created time.Time) string { return fleet.UID(testDatabase, "proxies/"+name, created) }
	doc := func(name string, created time.Time, uid string) fleet.Proxy {
		return fleet.Proxy{Name: name, CreateTime: created, Status: fleet.Status{UID: uid}}
	}
	t0, t1 := start, start.Add(time.Hour)
	uids := identities([]fleet.Proxy{
		doc("a-copy", t1, derived("b", t0)), doc("b", t0, derived("b", t0)), doc("c", t0, ""), doc("restored", t1, "from-a-backup"),
		doc("x-later", t1, "shared"), doc("y-earlier", t0, "shared"),
	}, testDatabase)
	assert.Equal(t, map[string]string{
		"a-copy": derived("a-copy", t1), "b": derived("b", t0), "c": derived("c", t0), "restored": "from-a-backup",
		"x-later": derived("x-later", t1), "y-earlier": "shared",
	}, uids)
}

func TestInstancesOfOthersAreNeverSeen(t *testing.T) {
	t.Parallel()
	ours := provider.Instance{Name: "ours", Owner: testOwner, UID: "u"}
	l := newListing([]provider.Instance{ours, {Name: "theirs", Owner: "x", UID: "u"}, {Name: "nobodys", UID: "u"}}, testOwner, nil)
	assert.Equal(t, []provider.Instance{ours}, l.instances, "whatever a provider lists")
	assert.Equal(t, map[string][]provider.Instance{"u": {ours}}, l.byUID)
	leaky := map[string]listing{"main": {instances: []provider.Instance{ours, {Name: "theirs", Owner: "x"}, {Name: "nobodys"}}}}
	found := findOrphans(leaky, testOwner, nil, nil)
	require.Len(t, found, 1)
	assert.Equal(t, "ours", found[0].Name)
	assert.Empty(t, findOrphans(leaky, testOwner, map[string]bool{"u": true}, nil), "a document has the uid")
	assert.Empty(t, findOrphans(leaky, testOwner, nil, map[string]bool{"ours": true}), "a document names it")
	twice := map[string]listing{"a": {instances: []provider.Instance{ours}}, "b": {instances: []provider.Instance{ours}}}
	assert.Len(t, findOrphans(twice, testOwner, nil, nil), 1, "two providers may share an account")
}

func TestWhatAListingSaysOfItself(t *testing.T) {
	t.Parallel()
	i := []provider.Instance{{Name: "i", Owner: testOwner}}
	for _, row := range []struct {
		promise                  string
		instances                []provider.Instance
		err                      error
		blind, partial, brokeOff bool
		silent                   map[string]bool
	}{
		{"all", i, nil, false, false, false, map[string]bool{}},
		{"some zones were silent", i, &provider.IncompleteError{Unreachable: []string{"zones/r1-a", "r1-b"}}, false, true, false, map[string]bool{"r1-a": true, "r1-b": true}},
		{"silent zones and nothing seen", nil, &provider.IncompleteError{Unreachable: []string{"r1-a"}}, false, true, false, map[string]bool{"r1-a": true}},
		{"it broke off", i, &provider.IncompleteError{Err: errTransient}, false, true, true, map[string]bool{}},
		{"it broke off before anything", nil, &provider.IncompleteError{Err: errTransient}, true, true, true, map[string]bool{}},
		{"it failed", nil, errPermanent, true, true, true, map[string]bool{}},
	} {
		l := newListing(row.instances, testOwner, row.err)
		assert.Equal(t, []bool{row.blind, row.partial, row.brokeOff}, []bool{l.blind, l.partial, l.brokeOff}, row.promise)
		assert.Equal(t, row.silent, l.silent, row.promise)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	old := start.Add(-time.Hour)
	mk := func(name string, state provider.State, created time.Time) orphan {
		return orphan{"main", provider.Instance{Name: name, State: state, CreateTime: created}}
	}
	seenLong := map[string]time.Time{"main/a": start.Add(-orphanGrace), "main/young": start.Add(-orphanGrace), "main/going": old, "main/odd": old, "main/missed": old, "other/missed": old}
	due, known, stop := sweep([]orphan{
		mk("a", runningState, old), mk("new", runningState, old), mk("going", stoppingState, old),
	}, seenLong, 100, map[string]bool{"other": true}, start)
	assert.False(t, stop)
	require.Len(t, due, 1)
	assert.Equal(t, "a", due[0].Name)
	assert.Equal(t, map[string]time.Time{"main/a": seenLong["main/a"], "main/new": start, "main/going": old, "other/missed": old}, known, "what an incomplete listing missed is not forgotten")
	due, _, _ = sweep([]orphan{mk("young", runningState, start.Add(-time.Minute)), mk("odd", unknownState, old)}, seenLong, 100, nil, start)
	assert.Empty(t, due)
}

func TestGuards(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ proxies, want int }{{1, 1}, {9, 1}, {19, 1}, {20, 2}, {1000, 100}} {
		assert.Equal(t, row.want, replacements(row.proxies), "%d", row.proxies)
	}
	for _, row := range []struct {
		bad, of int
		want    bool
	}{{2, 2, false}, {3, 3, true}, {3, 7, true}, {3, 8, false}, {4, 10, false}, {5, 10, true}, {400, 1000, false}, {401, 1000, true}} {
		assert.Equal(t, row.want, meltDown(row.bad, row.of), "%d of %d", row.bad, row.of)
	}
	for _, row := range []struct {
		bad, of int
		want    bool
	}{{3, 3, false}, {4, 4, true}, {4, 20, false}, {4, 19, true}, {200, 1000, false}, {201, 1000, true}} {
		assert.Equal(t, row.want, frozen(row.bad, row.of), "%d of %d", row.bad, row.of)
	}
}

func TestTextsAreClippedAtARunesBoundary(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "short", clip("short", 10))
	long := clip("ääääääääää", 9)
	assert.LessOrEqual(t, len(long), 12)
	assert.Equal(t, "one", firstLine("one\ntwo"))
}
