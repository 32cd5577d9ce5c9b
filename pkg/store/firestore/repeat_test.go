package firestore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// loseReply has the next commit take effect and its reply lost; the client then sends it again by
// itself.
func (w *wire) loseReply() {
	lost := false
	w.breaks(nil, func(method string) error {
		if method != commit || lost {
			return nil
		}
		lost = true
		return status.Error(codes.Unavailable, "connection reset")
	})
}

func TestWhatTheClientRepeatsByItselfIsFoundToBeDone(t *testing.T) {
	t.Parallel()
	emulator(t)
	for _, row := range []struct {
		name string
		run  func(t *testing.T, s *firestore.Store, w *wire)
	}{
		{"a status write succeeds", repeatedStatus},
		{"a removal succeeds", repeatedRemoval},
		{"an edit of any version succeeds", repeatedEdit},
		{"the first lock succeeds", repeatedFirstLock},
		{"a later lock succeeds", repeatedLock},
		{"an unlock succeeds", repeatedUnlock},
		{"a ban is counted once", repeatedBan},
		{"a verdict is set", repeatedVerdict},
		{"a shard write conflicts, and reading again shows it done", repeatedShard},
		{"a slot exists, and is one's own", repeatedTake},
		{"a renewal conflicts, and is one's own", repeatedRenewal},
		{"a release conflicts, and the slot is free", repeatedRelease},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, w := open(t)
			row.run(t, s, w)
		})
	}
}

func makeProxy(t *testing.T, s *firestore.Store) fleet.Proxy {
	t.Helper()
	p, err := s.CreateProxy(t.Context(), "a", store.Edit{Spec: external()})
	require.NoError(t, err)
	return p
}

func repeatedStatus(t *testing.T, s *firestore.Store, w *wire) {
	p := makeProxy(t, s)
	p.Status = fleet.Status{UID: "u", Phase: fleet.PhasePending, Retry: &fleet.Retry{NotBefore: start.Add(time.Nanosecond)}}
	p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionReady}, start)
	p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionAccepted}, start)
	w.loseReply()
	w.took()
	written, err := s.WriteStatus(t.Context(), p, store.ReconcileFields)
	require.NoError(t, err)
	assert.Equal(t, []string{commit, commit, read}, w.took())
	have, err := s.GetProxy(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, have, written)
}

func repeatedRemoval(t *testing.T, s *firestore.Store, w *wire) {
	p := makeProxy(t, s)
	w.loseReply()
	require.NoError(t, s.RemoveProxy(t.Context(), p))
}

func repeatedEdit(t *testing.T, s *firestore.Store, w *wire) {
	makeProxy(t, s)
	w.loseReply()
	p, err := s.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"k": "v"}}, time.Time{})
	require.NoError(t, err)
	assert.Equal(t, "v", p.Labels["k"])
}

func repeatedFirstLock(t *testing.T, s *firestore.Store, w *wire) {
	w.loseReply()
	r, err := s.LockRun(t.Context(), "me", start, time.Minute)
	require.NoError(t, err)
	assert.EqualValues(t, 1, r.Fence)
	require.NoError(t, s.UnlockRun(t.Context(), r), "with the version that the lock returned")
}

func repeatedLock(t *testing.T, s *firestore.Store, w *wire) {
	first, err := s.LockRun(t.Context(), "first", start, time.Minute)
	require.NoError(t, err)
	w.loseReply()
	r, err := s.LockRun(t.Context(), "me", start.Add(time.Hour), time.Minute)
	require.NoError(t, err)
	assert.Equal(t, first.Fence+1, r.Fence)
	assert.Equal(t, "me", r.Holder)
}

func repeatedUnlock(t *testing.T, s *firestore.Store, w *wire) {
	r, err := s.LockRun(t.Context(), "me", start, time.Minute)
	require.NoError(t, err)
	r.EndTime, r.Cursor = start.Add(time.Second), "c"
	w.loseReply()
	require.NoError(t, s.UnlockRun(t.Context(), r))
	have, err := s.GetRun(t.Context())
	require.NoError(t, err)
	assert.Empty(t, have.Holder)
	assert.Equal(t, "c", have.Cursor)
}

func repeatedBan(t *testing.T, s *firestore.Store, w *wire) {
	for n, lease := range []string{"l1", "l2"} { // the document is made, then changed
		w.loseReply()
		got, err := s.RecordBan(t.Context(), "a", "t", lease, start, time.Hour)
		require.NoError(t, err)
		assert.Equal(t, n+1, got)
	}
}

func repeatedVerdict(t *testing.T, s *firestore.Store, w *wire) {
	_, err := s.WriteShard(t.Context(), store.Shard{}, map[string]fleet.Entry{"a": {}}, nil)
	require.NoError(t, err)
	w.loseReply()
	require.NoError(t, s.SetVerdict(t.Context(), 0, "a", fleet.Verdict{Healthy: true}))
}

func repeatedShard(t *testing.T, s *firestore.Store, w *wire) {
	sh := store.Shard{}
	for n := range 2 { // the document is made, then changed
		w.loseReply()
		_, err := s.WriteShard(t.Context(), sh, map[string]fleet.Entry{"a": {Capacity: int32(n)}}, nil)
		require.ErrorIs(t, err, store.ErrConflict)
		shards, err := s.ReadCatalog(t.Context())
		require.NoError(t, err)
		sh = shards[0]
		require.EqualValues(t, n, sh.Entries["a"].Capacity)
	}
}

func repeatedTake(t *testing.T, s *firestore.Store, w *wire) {
	for n, req := range []*store.Request{nil, asked("key")} {
		w.loseReply()
		_, err := s.CreateSlot(t.Context(), leased(n, "mine"), req)
		require.ErrorIs(t, err, store.ErrExists)
		have, err := s.GetSlot(t.Context(), "a", n)
		require.NoError(t, err)
		assert.Equal(t, "mine", have.LeaseID)
		assert.Equal(t, have.Version.UnixMicro(), have.Fence)
	}
}

func repeatedRenewal(t *testing.T, s *firestore.Store, w *wire) {
	slot, err := s.CreateSlot(t.Context(), leased(0, "mine"), nil)
	require.NoError(t, err)
	slot.ExpireTime = start.Add(time.Hour)
	w.loseReply()
	_, err = s.ReplaceSlot(t.Context(), slot, nil)
	require.ErrorIs(t, err, store.ErrConflict)
	have, err := s.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	assert.Equal(t, "mine", have.LeaseID)
	assert.Equal(t, slot.Fence, have.Fence)
	assert.Equal(t, slot.ExpireTime, have.ExpireTime)
}

func repeatedRelease(t *testing.T, s *firestore.Store, w *wire) {
	slot, err := s.CreateSlot(t.Context(), leased(0, "mine"), nil)
	require.NoError(t, err)
	w.loseReply()
	require.ErrorIs(t, s.DeleteSlot(t.Context(), slot), store.ErrConflict)
	_, err = s.GetSlot(t.Context(), "a", 0)
	require.ErrorIs(t, err, store.ErrNotFound)
}
