package firestore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// What people do to documents by hand costs what they touched, and can be mended.

func sound() fleet.Status {
	s := fleet.Status{UID: "u", Incarnation: 2, Instance: &fleet.Instance{Name: "i"}, Health: fleet.Health{Incarnation: 2, Healthy: true}}
	for _, t := range store.ConditionTypes() {
		s.Conditions.Set(fleet.Condition{Type: t, Status: true, Reason: "Fine", Message: "m"}, start)
	}
	return store.NormalStatus(s)
}

func TestAPartOfAStatusThatCannotBeReadCostsThatPartOnly(t *testing.T) {
	t.Parallel()
	emulator(t)
	whole := sound()
	lacks := func(change func(*fleet.Status)) fleet.Status {
		s := sound()
		change(&s)
		return store.NormalStatus(s)
	}
	noReconcile := lacks(func(s *fleet.Status) { *s = fleet.Status{Health: s.Health, Conditions: s.Conditions} })
	for _, row := range []struct {
		name  string
		path  []string
		value any
		want  fleet.Status
	}{
		{"a field of reconcile", []string{"instance"}, "gone", noReconcile},
		{"a field within", []string{"instance", "incarnation"}, "many", noReconcile},
		{"health", []string{"health"}, 7, lacks(func(s *fleet.Status) { s.Health = fleet.Health{} })},
		{"a condition", []string{"conditions", "Ready"}, "yes", lacks(func(s *fleet.Status) { s.Conditions.Drop(fleet.ConditionReady) })},
		{"a condition that nobody knows", []string{"conditions", "Odd"}, "yes", whole},
		{"a field that nobody knows", []string{"odd"}, []any{1}, whole},
		{"all conditions", []string{"conditions"}, 5, lacks(func(s *fleet.Status) { s.Conditions = nil })},
		{"everything", nil, "lost", fleet.Status{}},
		{"everything, to nothing", nil, nil, fleet.Status{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			p := makeProxy(t, s)
			p.Status = sound()
			p, err := s.WriteStatus(t.Context(), p, store.AllFields)
			require.NoError(t, err)
			firestore.SetByHand(t, s, "proxies", "a", append([]string{"status"}, row.path...), row.value)
			got, err := s.GetProxy(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, row.want, got.Status)
			assert.Empty(t, got.Broken)
			assert.Equal(t, fleet.External, got.Spec.Mode)
			// Each owner mends its part.
			got.Status = sound()
			for _, fields := range []store.StatusFields{store.ReconcileFields, store.HealthFields} {
				got, err = s.WriteStatus(t.Context(), got, fields)
				require.NoError(t, err)
			}
			got, err = s.GetProxy(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, whole, got.Status)
		})
	}
}

func TestASlotThatCannotBeReadIsTakenOver(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for n := range 3 {
		_, err := s.CreateSlot(t.Context(), leased(n, "l"), nil)
		require.NoError(t, err)
	}
	firestore.SetByHand(t, s, "slots", "a.1", []string{"expireTime"}, "tomorrow")
	firestore.SetByHand(t, s, "slots", "a.1", []string{"proxy"}, 7)
	firestore.SetByHand(t, s, "slots", "a.1", []string{"bucket"}, "none")
	firestore.SetByHand(t, s, "slots", "a.first", []string{"n"}, 1)
	firestore.SetByHand(t, s, "slots", "a.03", []string{"n"}, 3)
	slots, err := s.ProxySlots(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, slots, 3, "what is no slot is left out")
	broken := slots[1]
	assert.Equal(t, store.Slot{Proxy: "a", N: 1, LeaseID: "l", AcquireTime: start, Fence: broken.Version.UnixMicro(), Version: broken.Version}, broken)
	got, err := s.GetSlot(t.Context(), "a", 1)
	require.NoError(t, err)
	assert.Equal(t, broken, got)
	next := leased(1, "next")
	next.Version = broken.Version
	next, err = s.ReplaceSlot(t.Context(), next, nil)
	require.NoError(t, err)
	got, err = s.GetSlot(t.Context(), "a", 1)
	require.NoError(t, err)
	assert.Equal(t, next, got)
	n, err := s.CountSlots(t.Context(), start)
	require.NoError(t, err)
	assert.EqualValues(t, 3, n, "mended, it is counted again")
}

func TestAnEntryThatCannotBeReadIsEmptyAndTheOthersStay(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	good := fleet.Entry{
		Host: "h", Port: 1, Labels: map[string]string{"k": "v"}, Credentials: &fleet.SecretRef{Name: "n", Key: "k"}, Capacity: 3, NarrowTime: start,
		Verdict: fleet.Verdict{Healthy: true, Since: start.Add(time.Microsecond)}, Quarantine: map[string]time.Time{fleet.QuarantineKey("a.b"): start},
	}
	version, err := s.WriteShard(t.Context(), store.Shard{}, map[string]fleet.Entry{"good": good, "bad-one": good}, nil)
	require.NoError(t, err)
	firestore.SetByHand(t, s, "catalog", "0", []string{"entries", "bad-one", "port"}, "x")
	firestore.SetByHand(t, s, "catalog", "0", []string{"entries", "odd"}, "x")
	for _, id := range []string{"readme", "-1", "007"} {
		firestore.SetByHand(t, s, "catalog", id, []string{"entries"}, map[string]any{})
	}
	shards, err := s.ReadCatalog(t.Context())
	require.NoError(t, err)
	require.Len(t, shards, 1, "what is no shard is left out")
	assert.Equal(t, map[string]fleet.Entry{"good": good, "bad-one": {}, "odd": {}}, shards[0].Entries)
	require.NotEqual(t, version, shards[0].Version)
	_, err = s.WriteShard(t.Context(), shards[0], map[string]fleet.Entry{"bad-one": good}, []string{"odd"})
	require.NoError(t, err)
	shards, err = s.ReadCatalog(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]fleet.Entry{"good": good, "bad-one": good}, shards[0].Entries)

	firestore.SetByHand(t, s, "catalog", "0", []string{"entries"}, 7)
	shards, err = s.ReadCatalog(t.Context())
	require.NoError(t, err)
	assert.Empty(t, shards[0].Entries)
	_, err = s.WriteShard(t.Context(), shards[0], map[string]fleet.Entry{"good": good}, nil)
	require.NoError(t, err)
	shards, err = s.ReadCatalog(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]fleet.Entry{"good": good}, shards[0].Entries)
}

func TestALockThatWasChangedByHandIsStillOnes(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	r, err := s.LockRun(t.Context(), "me", start, time.Minute)
	require.NoError(t, err)
	firestore.SetByHand(t, s, "runs", "reconcile", []string{"cursor"}, "by hand")
	r.Cursor = "mine"
	require.NoError(t, s.UnlockRun(t.Context(), r))
	have, err := s.GetRun(t.Context())
	require.NoError(t, err)
	assert.Empty(t, have.Holder)
	assert.Equal(t, "mine", have.Cursor)
}

func TestARunThatCannotBeReadIsFreeAndItsFenceStillGrows(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	old, err := s.LockRun(t.Context(), "old", start, time.Hour)
	require.NoError(t, err)
	for path, value := range map[string]any{"fence": "x", "holder": 7, "expireTime": "x", "orphans": []any{}, "cooldowns": map[string]any{"a": "x", "b": start}, "summary": 1} {
		firestore.SetByHand(t, s, "runs", "reconcile", []string{path}, value)
	}
	r, err := s.LockRun(t.Context(), "me", start, time.Minute)
	require.NoError(t, err)
	assert.Greater(t, r.Fence, old.Fence)
	assert.Empty(t, r.Orphans)
	assert.Equal(t, map[string]time.Time{"b": start}, r.Cooldowns, "what can be read is kept")
	require.ErrorIs(t, s.UnlockRun(t.Context(), old), store.ErrConflict)
	require.NoError(t, s.UnlockRun(t.Context(), r))
}

func TestALockWhoseDocumentWasRemovedIsNobodys(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	old, err := s.LockRun(t.Context(), "old", start, time.Hour)
	require.NoError(t, err)
	firestore.RemoveByHand(t, s, "runs", "reconcile")
	r, err := s.LockRun(t.Context(), "me", start, time.Minute)
	require.NoError(t, err)
	require.ErrorIs(t, s.UnlockRun(t.Context(), old), store.ErrConflict, "though both are the first ones")
	have, err := s.GetRun(t.Context())
	require.NoError(t, err)
	assert.Equal(t, r, have)
}

func TestBansThatCannotBeReadAreCountedAnew(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	_, err := s.RecordBan(t.Context(), "a", "t", "l1", start, time.Hour)
	require.NoError(t, err)
	firestore.SetByHand(t, s, "bans", firestore.BanID("a", "t"), []string{"leases"}, "many")
	n, err := s.RecordBan(t.Context(), "a", "t", "l2", start, time.Hour)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}
