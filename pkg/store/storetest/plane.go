package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func requestCases() []testCase {
	return []testCase{
		{"bans are counted by distinct lease within the window", bansAreCounted},
		{"an unknown request is not found", func(t *testing.T, h Harness) {
			_, err := h.Store.GetRequest(t.Context(), "none")
			require.ErrorIs(t, err, store.ErrNotFound)
		}},
	}
}

func bansAreCounted(t *testing.T, h Harness) {
	ban := func(proxy, target, lease string, d time.Duration) int {
		n, err := h.Store.RecordBan(t.Context(), proxy, target, lease, at(d), 30*time.Minute)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 1, ban("a", "shop.example", "a.0.x", 0))
	require.Equal(t, 1, ban("a", "shop.example", "a.0.x", time.Minute), "the same lease")
	require.Equal(t, 2, ban("a", "shop.example", "a.0.y", 2*time.Minute))
	require.Equal(t, 1, ban("a", "other.example", "a.0.y", 2*time.Minute))
	require.Equal(t, 1, ban("b", "shop.example", "b.0.y", 2*time.Minute))
	require.Equal(t, 3, ban("a", "shop.example", "a.1.z", 31*time.Minute))
	require.Equal(t, 2, ban("a", "shop.example", "a.2.z", 33*time.Minute), "what is older than the window is forgotten")
}

func catalogCases() []testCase {
	return []testCase{
		{"an empty catalog is no error", func(t *testing.T, h Harness) {
			shards, err := h.Store.ReadCatalog(t.Context())
			require.NoError(t, err)
			require.Empty(t, shards)
		}},
		{"entries survive whole", entriesSurvive},
		{"a shard write leaves the other entries", shardWriteLeavesOthers},
		{"a shard write of an old version conflicts", oldShardConflicts},
		{"a verdict that flips between read and write is not lost", verdictIsNotLost},
		{"verdict and quarantine are set alone", verdictAndQuarantine},
		{"a missing shard is not found", func(t *testing.T, h Harness) {
			require.ErrorIs(t, h.Store.SetVerdict(t.Context(), 3, "a", fleet.Verdict{}), store.ErrNotFound)
			require.ErrorIs(t, h.Store.SetQuarantine(t.Context(), 3, "a", "x", at(0)), store.ErrNotFound)
		}},
	}
}

func entry() fleet.Entry {
	return fleet.Entry{
		Host: "192.0.2.1", Port: 3128, Incarnation: 3, Labels: map[string]string{"a.b/c": "x"}, Mode: fleet.Managed, Provider: "mock", Region: "r",
		Credentials: &fleet.SecretRef{Name: "n", Key: "k"}, Gate: fleet.GateDraining, GateReason: "g", MaxLeases: 5, Capacity: 4, Ceiling: 6,
		DrainDeadline: at(time.Minute), DrainingBelow: 3, NarrowTime: at(2 * time.Minute),
		Verdict:    fleet.Verdict{Healthy: true, Outcome: fleet.OutcomeOK, Incarnation: 3, Since: at(0)},
		Quarantine: map[string]time.Time{"www.shop.example": at(time.Hour)},
	}
}

func writeShard(t *testing.T, s store.Store, sh store.Shard, put map[string]fleet.Entry, drop ...string) time.Time {
	t.Helper()
	v, err := s.WriteShard(t.Context(), sh, put, drop)
	require.NoError(t, err)
	return v
}

func readShard(t *testing.T, s store.Store, id int) store.Shard {
	t.Helper()
	shards, err := s.ReadCatalog(t.Context())
	require.NoError(t, err)
	for _, sh := range shards {
		if sh.ID == id {
			return sh
		}
	}
	require.Fail(t, "no such shard")
	return store.Shard{}
}

func entriesSurvive(t *testing.T, h Harness) {
	writeShard(t, h.Store, store.Shard{ID: 1}, map[string]fleet.Entry{"us-east1-a": entry(), "b": {}})
	writeShard(t, h.Store, store.Shard{ID: 0}, map[string]fleet.Entry{"c": {Host: "h"}})
	shards, err := h.Store.ReadCatalog(t.Context())
	require.NoError(t, err)
	require.Len(t, shards, 2)
	require.Equal(t, 0, shards[0].ID)
	require.Equal(t, entry(), shards[1].Entries["us-east1-a"])
	require.Contains(t, shards[1].Entries, "b")
}

func shardWriteLeavesOthers(t *testing.T, h Harness) {
	v := writeShard(t, h.Store, store.Shard{}, map[string]fleet.Entry{"a": {Host: "1"}, "b": {Host: "2"}, "c-d": {Host: "3"}})
	require.Equal(t, v, readShard(t, h.Store, 0).Version)
	v2 := writeShard(t, h.Store, store.Shard{Version: v}, map[string]fleet.Entry{"a": {Host: "9"}, "e": {Host: "4"}}, "b")
	sh := readShard(t, h.Store, 0)
	require.Equal(t, v2, sh.Version)
	require.Equal(t, map[string]string{"a": "9", "c-d": "3", "e": "4"}, hosts(sh))
}

func hosts(sh store.Shard) map[string]string {
	out := map[string]string{}
	for name, e := range sh.Entries {
		out[name] = e.Host
	}
	return out
}

func oldShardConflicts(t *testing.T, h Harness) {
	v := writeShard(t, h.Store, store.Shard{}, map[string]fleet.Entry{"a": {Host: "1"}})
	_, err := h.Store.WriteShard(t.Context(), store.Shard{}, map[string]fleet.Entry{"b": {}}, nil)
	require.ErrorIs(t, err, store.ErrConflict, "it exists")
	writeShard(t, h.Store, store.Shard{Version: v}, map[string]fleet.Entry{"a": {Host: "2"}})
	_, err = h.Store.WriteShard(t.Context(), store.Shard{Version: v}, map[string]fleet.Entry{"a": {Host: "3"}}, nil)
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = h.Store.WriteShard(t.Context(), store.Shard{ID: 7, Version: v}, map[string]fleet.Entry{"a": {}}, nil)
	require.ErrorIs(t, err, store.ErrConflict, "no such shard")
	require.Equal(t, map[string]string{"a": "2"}, hosts(readShard(t, h.Store, 0)))
}

func verdictIsNotLost(t *testing.T, h Harness) {
	writeShard(t, h.Store, store.Shard{}, map[string]fleet.Entry{"a": entry()})
	read := readShard(t, h.Store, 0)
	require.NoError(t, h.Store.SetVerdict(t.Context(), 0, "a", fleet.Verdict{Outcome: fleet.OutcomeReset, Incarnation: 3, Since: at(time.Hour)}))
	_, err := h.Store.WriteShard(t.Context(), read, map[string]fleet.Entry{"a": entry()}, nil)
	require.ErrorIs(t, err, store.ErrConflict)
	require.False(t, readShard(t, h.Store, 0).Entries["a"].Verdict.Healthy)
}

func verdictAndQuarantine(t *testing.T, h Harness) {
	e := entry()
	writeShard(t, h.Store, store.Shard{}, map[string]fleet.Entry{"a-b": e, "plain": {Host: "h"}})
	e.Verdict = fleet.Verdict{Outcome: fleet.OutcomeTLS, Incarnation: 3, Since: at(time.Hour)}
	require.NoError(t, h.Store.SetVerdict(t.Context(), 0, "a-b", e.Verdict))
	require.NoError(t, h.Store.SetQuarantine(t.Context(), 0, "a-b", "API.shop.example.", at(2*time.Hour)))
	require.NoError(t, h.Store.SetQuarantine(t.Context(), 0, "plain", "2001:db8::1", at(2*time.Hour)))
	e.Quarantine[fleet.QuarantineKey("API.shop.example.")] = at(2 * time.Hour)
	sh := readShard(t, h.Store, 0)
	require.Equal(t, e, sh.Entries["a-b"])
	require.Equal(t, at(2*time.Hour), sh.Entries["plain"].Quarantine[fleet.QuarantineKey("2001:db8::1")])
	require.Equal(t, "h", sh.Entries["plain"].Host)
}

func runCases() []testCase {
	return []testCase{
		{"there is a run document before the first run", func(t *testing.T, h Harness) {
			r, err := h.Store.GetRun(t.Context())
			require.NoError(t, err)
			require.Zero(t, r)
		}},
		{"the lock has one holder until it expires", lockHasOneHolder},
		{"what a run leaves is found by the next", runLeavesSomething},
		{"an old holder cannot unlock", oldHolderCannotUnlock},
		{"one's own repeated unlock succeeds", repeatedUnlock},
	}
}

func lockHasOneHolder(t *testing.T, h Harness) {
	first, err := h.Store.LockRun(t.Context(), "one", at(0), time.Minute)
	require.NoError(t, err)
	require.Equal(t, "one", first.Holder)
	require.Equal(t, at(time.Minute), first.ExpireTime)
	held, err := h.Store.LockRun(t.Context(), "two", at(59*time.Second), time.Minute)
	require.ErrorIs(t, err, store.ErrLocked)
	require.Equal(t, "one", held.Holder)
	second, err := h.Store.LockRun(t.Context(), "two", at(time.Minute), time.Minute)
	require.NoError(t, err)
	require.Greater(t, second.Fence, first.Fence)
}

func runLeavesSomething(t *testing.T, h Harness) {
	r, err := h.Store.LockRun(t.Context(), "one", at(0), time.Minute)
	require.NoError(t, err)
	r.Cursor, r.EndTime, r.Summary = "m", at(time.Second), []byte(`{"proxies":3}`)
	r.Orphans = map[string]time.Time{"mock/proxy-abc": at(0)}
	r.Cooldowns = map[string]time.Time{"gce/us-east1-b": at(time.Hour)}
	require.NoError(t, h.Store.UnlockRun(t.Context(), r))
	next, err := h.Store.LockRun(t.Context(), "two", at(2*time.Second), time.Minute)
	require.NoError(t, err)
	require.Equal(t, r.Cursor, next.Cursor)
	require.Equal(t, r.EndTime, next.EndTime)
	require.Equal(t, r.Orphans, next.Orphans)
	require.Equal(t, r.Cooldowns, next.Cooldowns)
	require.JSONEq(t, string(r.Summary), string(next.Summary))
	require.Greater(t, next.Fence, r.Fence)
}

func oldHolderCannotUnlock(t *testing.T, h Harness) {
	old, err := h.Store.LockRun(t.Context(), "one", at(0), time.Minute)
	require.NoError(t, err)
	_, err = h.Store.LockRun(t.Context(), "two", at(time.Hour), time.Minute)
	require.NoError(t, err)
	old.Cursor = "stale"
	require.ErrorIs(t, h.Store.UnlockRun(t.Context(), old), store.ErrConflict)
	r, err := h.Store.GetRun(t.Context())
	require.NoError(t, err)
	require.Equal(t, "two", r.Holder)
	require.Empty(t, r.Cursor)
}

func repeatedUnlock(t *testing.T, h Harness) {
	r, err := h.Store.LockRun(t.Context(), "one", at(0), time.Minute)
	require.NoError(t, err)
	r.EndTime = at(time.Second)
	require.NoError(t, h.Store.UnlockRun(t.Context(), r))
	require.NoError(t, h.Store.UnlockRun(t.Context(), r), "as the client does when an answer is lost")
}
