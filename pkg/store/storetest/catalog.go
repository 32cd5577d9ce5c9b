package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

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
		{"a write of what is there already keeps the version", idleShardKeepsVersion},
		{"an empty shard can be filled, and emptied again", emptyShard},
		{"a shard holds a thousand entries", fullShard},
		{"a verdict on an entry that is not there makes none that is ready", verdictOnNothing},
		{"what callers change in their catalog stays theirs", catalogIsTheirs},
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
	requireFull(t, entry())
	writeShard(t, h.Store, store.Shard{ID: 1}, map[string]fleet.Entry{"us-east1-a": entry(), "b": {}})
	writeShard(t, h.Store, store.Shard{ID: 0}, map[string]fleet.Entry{"c": {Host: "h"}})
	shards, err := h.Store.ReadCatalog(t.Context())
	require.NoError(t, err)
	require.Len(t, shards, 2)
	require.Equal(t, 0, shards[0].ID)
	require.Equal(t, entry(), shards[1].Entries["us-east1-a"])
	require.Equal(t, fleet.Entry{}, shards[1].Entries["b"])
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

func idleShardKeepsVersion(t *testing.T, h Harness) {
	v := writeShard(t, h.Store, store.Shard{}, map[string]fleet.Entry{"a": entry(), "b": {Host: "h"}})
	require.Equal(t, v, writeShard(t, h.Store, store.Shard{Version: v}, map[string]fleet.Entry{"a": entry()}, "none"))
	require.NoError(t, h.Store.SetVerdict(t.Context(), 0, "a", entry().Verdict))
	require.NoError(t, h.Store.SetQuarantine(t.Context(), 0, "a", "www.shop.example", at(time.Hour)))
	require.Equal(t, v, readShard(t, h.Store, 0).Version)
}

func emptyShard(t *testing.T, h Harness) {
	v := writeShard(t, h.Store, store.Shard{}, nil)
	sh := readShard(t, h.Store, 0)
	require.Empty(t, sh.Entries)
	require.Equal(t, v, sh.Version)
	v = writeShard(t, h.Store, sh, map[string]fleet.Entry{"a": {Host: "1"}})
	v = writeShard(t, h.Store, store.Shard{Version: v}, nil, "a")
	require.Empty(t, readShard(t, h.Store, 0).Entries)
	require.Equal(t, v, readShard(t, h.Store, 0).Version)
	require.NoError(t, h.Store.SetVerdict(t.Context(), 0, "b", fleet.Verdict{Healthy: true}))
	require.True(t, readShard(t, h.Store, 0).Entries["b"].Verdict.Healthy)
}

func fullShard(t *testing.T, h Harness) {
	put := map[string]fleet.Entry{}
	for n := range store.MaxShardEntries {
		put[fmt.Sprintf("proxy-%04d", n)] = entry()
	}
	v := writeShard(t, h.Store, store.Shard{}, put)
	for name, e := range put {
		e.Capacity++
		put[name] = e
	}
	writeShard(t, h.Store, store.Shard{Version: v}, put)
	require.Equal(t, put, readShard(t, h.Store, 0).Entries)
}

func verdictOnNothing(t *testing.T, h Harness) {
	writeShard(t, h.Store, store.Shard{}, map[string]fleet.Entry{"a": entry()})
	require.NoError(t, h.Store.SetVerdict(t.Context(), 0, "gone", fleet.Verdict{Healthy: true}))
	require.NoError(t, h.Store.SetQuarantine(t.Context(), 0, "gone", "x", at(0)))
	require.False(t, readShard(t, h.Store, 0).Entries["gone"].Ready())
}

func catalogIsTheirs(t *testing.T, h Harness) {
	put := map[string]fleet.Entry{"a": entry()}
	writeShard(t, h.Store, store.Shard{}, put)
	spoil(&put)
	require.Equal(t, map[string]fleet.Entry{"a": entry()}, readShard(t, h.Store, 0).Entries)
	mine := readShard(t, h.Store, 0)
	spoil(&mine)
	require.Equal(t, map[string]fleet.Entry{"a": entry()}, readShard(t, h.Store, 0).Entries)
}
