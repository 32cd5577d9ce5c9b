package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store"
)

func slotCases() []testCase {
	return []testCase{
		{"a slot is taken once", slotIsTakenOnce},
		{"one of many takers wins", oneTakerWins},
		{"a slot is read back whole", slotIsReadBack},
		{"a renewal keeps the fence and a takeover grows it", fences},
		{"every holder's fence is larger than the last one's", fencesGrow},
		{"replacing an old version conflicts", replaceIsConditional},
		{"freeing an old version conflicts", freeIsConditional},
		{"slot and request are committed together", slotWithRequest},
		{"a takeover and its request are committed together", takeoverWithRequest},
		{"a renewal that changes nothing keeps the version", idleRenewalKeepsVersion},
		{"one of many takers of an expired slot wins", oneTakeoverWins},
		{"a slot whose write is repeated is found to be one's own", repeatedCreateIsOwn},
		{"a takeover replaces all that the last holder left", takeoverReplacesAll},
	}
}

func slot(proxy string, n int, lease string) store.Slot {
	return store.Slot{Proxy: proxy, N: n, LeaseID: lease, Incarnation: 2, Holder: "h", RequestID: "r", Target: "t", Rebound: true, AcquireTime: at(0), ExpireTime: at(time.Minute)}
}

func take(t *testing.T, s store.Store, proxy string, n int, lease string) store.Slot {
	t.Helper()
	got, err := s.CreateSlot(t.Context(), slot(proxy, n, lease), nil)
	require.NoError(t, err)
	return got
}

func slotIsTakenOnce(t *testing.T, h Harness) {
	first := take(t, h.Store, "a", 0, "one")
	_, err := h.Store.CreateSlot(t.Context(), slot("a", 0, "two"), nil)
	require.ErrorIs(t, err, store.ErrExists)
	got, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, first, got)
	take(t, h.Store, "a", 1, "three")
	_, err = h.Store.GetSlot(t.Context(), "a", 2)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func oneTakerWins(t *testing.T, h Harness) {
	const takers = 8
	errs := make([]error, takers)
	var wg sync.WaitGroup
	for i := range takers {
		wg.Go(func() { _, errs[i] = h.Store.CreateSlot(t.Context(), slot("a", 0, fmt.Sprint(i)), nil) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, store.ErrExists)
	}
	require.Equal(t, 1, won)
}

func slotIsReadBack(t *testing.T, h Harness) {
	want := slot("a", 12, "x")
	want.Fence, want.Version = 99, at(0) // not the caller's to say
	got, err := h.Store.CreateSlot(t.Context(), want, nil)
	require.NoError(t, err)
	want.Fence, want.Version = got.Fence, got.Version
	require.Equal(t, want, got)
	require.Equal(t, got.Version.UnixMicro(), got.Fence)
	read, err := h.Store.GetSlot(t.Context(), "a", 12)
	require.NoError(t, err)
	require.Equal(t, want, read)
}

func fences(t *testing.T, h Harness) {
	first := take(t, h.Store, "a", 0, "one")
	renewed := first
	for range 3 {
		renewed.ExpireTime = renewed.ExpireTime.Add(time.Minute)
		var err error
		renewed, err = h.Store.ReplaceSlot(t.Context(), renewed, nil)
		require.NoError(t, err)
		require.Equal(t, first.Fence, renewed.Fence)
		require.True(t, renewed.Version.After(first.Version))
		read, err := h.Store.GetSlot(t.Context(), "a", 0)
		require.NoError(t, err)
		require.Equal(t, renewed, read, "whoever reads it")
	}
	taken := slot("a", 0, "two")
	taken.Version = renewed.Version
	taken, err := h.Store.ReplaceSlot(t.Context(), taken, nil)
	require.NoError(t, err)
	require.Greater(t, taken.Fence, first.Fence)
	read, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, taken, read)
}

func fencesGrow(t *testing.T, h Harness) {
	last := int64(0)
	for i := range 10 {
		s := take(t, h.Store, "a", 0, fmt.Sprint(i))
		require.Greater(t, s.Fence, last)
		last = s.Fence
		require.NoError(t, h.Store.DeleteSlot(t.Context(), s))
	}
}

func replaceIsConditional(t *testing.T, h Harness) {
	old := take(t, h.Store, "a", 0, "one")
	_, err := h.Store.ReplaceSlot(t.Context(), old, nil)
	require.NoError(t, err, "a renewal that changes nothing")
	changed := old
	changed.ExpireTime = at(time.Hour)
	now, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	changed.Version = now.Version
	changed, err = h.Store.ReplaceSlot(t.Context(), changed, nil)
	require.NoError(t, err)
	old.ExpireTime = at(2 * time.Hour)
	old.Version = old.Version.Add(-time.Microsecond)
	_, err = h.Store.ReplaceSlot(t.Context(), old, nil)
	require.ErrorIs(t, err, store.ErrConflict)
	require.NoError(t, h.Store.DeleteSlot(t.Context(), changed))
	_, err = h.Store.ReplaceSlot(t.Context(), changed, nil)
	require.ErrorIs(t, err, store.ErrConflict, "it is gone")
}

func freeIsConditional(t *testing.T, h Harness) {
	old := take(t, h.Store, "a", 0, "one")
	renewed := old
	renewed.ExpireTime = at(time.Hour)
	renewed, err := h.Store.ReplaceSlot(t.Context(), renewed, nil)
	require.NoError(t, err)
	require.ErrorIs(t, h.Store.DeleteSlot(t.Context(), old), store.ErrConflict)
	require.NoError(t, h.Store.DeleteSlot(t.Context(), renewed))
	require.ErrorIs(t, h.Store.DeleteSlot(t.Context(), renewed), store.ErrConflict)
	next := take(t, h.Store, "a", 0, "two")
	require.ErrorIs(t, h.Store.DeleteSlot(t.Context(), renewed), store.ErrConflict, "the next holder is safe")
	got, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, next, got)
}

func request(lease string) *store.Request {
	return &store.Request{Key: "key", PayloadHash: "p", LeaseID: lease, ExpireTime: at(time.Hour)}
}

func slotWithRequest(t *testing.T, h Harness) {
	_, err := h.Store.CreateSlot(t.Context(), slot("a", 0, "one"), request("one"))
	require.NoError(t, err)
	got, err := h.Store.GetRequest(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, *request("one"), got)
	_, err = h.Store.CreateSlot(t.Context(), slot("a", 1, "two"), request("two"))
	require.ErrorIs(t, err, store.ErrExists)
	_, err = h.Store.GetSlot(t.Context(), "a", 1)
	require.ErrorIs(t, err, store.ErrNotFound, "no slot without its request")
	other := request("three")
	other.Key = "other"
	_, err = h.Store.CreateSlot(t.Context(), slot("a", 0, "three"), other)
	require.ErrorIs(t, err, store.ErrExists)
	_, err = h.Store.GetRequest(t.Context(), "other")
	require.ErrorIs(t, err, store.ErrNotFound, "no request without its slot")
}

func takeoverWithRequest(t *testing.T, h Harness) {
	old := take(t, h.Store, "a", 0, "one")
	next := slot("a", 0, "two")
	next.Version = old.Version.Add(-time.Microsecond)
	_, err := h.Store.ReplaceSlot(t.Context(), next, request("two"))
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = h.Store.GetRequest(t.Context(), "key")
	require.ErrorIs(t, err, store.ErrNotFound)
	next.Version = old.Version
	next, err = h.Store.ReplaceSlot(t.Context(), next, request("two"))
	require.NoError(t, err)
	next.LeaseID, next.Fence = "three", 0
	_, err = h.Store.ReplaceSlot(t.Context(), next, request("three"))
	require.ErrorIs(t, err, store.ErrExists)
	got, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, "two", got.LeaseID)
}

func idleRenewalKeepsVersion(t *testing.T, h Harness) {
	first := take(t, h.Store, "a", 0, "one")
	renewed, err := h.Store.ReplaceSlot(t.Context(), first, nil) // the first one writes down the fence
	require.NoError(t, err)
	for range 2 {
		again, err := h.Store.ReplaceSlot(t.Context(), renewed, nil)
		require.NoError(t, err)
		require.Equal(t, renewed, again)
	}
	read, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, renewed, read)
}

func oneTakeoverWins(t *testing.T, h Harness) {
	old := take(t, h.Store, "a", 0, "old")
	const takers = 8
	got, errs := make([]store.Slot, takers), make([]error, takers)
	var wg sync.WaitGroup
	for i := range takers {
		wg.Go(func() {
			want := slot("a", 0, fmt.Sprint(i))
			want.Version = old.Version
			got[i], errs[i] = h.Store.ReplaceSlot(t.Context(), want, nil)
		})
	}
	wg.Wait()
	var won []store.Slot
	for i, err := range errs {
		if err == nil {
			won = append(won, got[i])
			continue
		}
		require.ErrorIs(t, err, store.ErrConflict)
	}
	require.Len(t, won, 1)
	read, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, won[0], read)
	require.Greater(t, read.Fence, old.Fence)
}

func repeatedCreateIsOwn(t *testing.T, h Harness) {
	first, err := h.Store.CreateSlot(t.Context(), slot("a", 0, "one"), request("one"))
	require.NoError(t, err)
	_, err = h.Store.CreateSlot(t.Context(), slot("a", 0, "one"), request("one")) // as the client does when an answer is lost
	require.ErrorIs(t, err, store.ErrExists)
	read, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, first, read, "lease id, fence and version tell")
}

func takeoverReplacesAll(t *testing.T, h Harness) {
	old := take(t, h.Store, "a", 0, "old")
	old.ExpireTime = at(2 * time.Minute)
	old, err := h.Store.ReplaceSlot(t.Context(), old, nil)
	require.NoError(t, err)
	want := store.Slot{Proxy: "a", N: 0, LeaseID: "new", ExpireTime: at(time.Hour), Version: old.Version}
	got, err := h.Store.ReplaceSlot(t.Context(), want, nil)
	require.NoError(t, err)
	want.Fence, want.Version = got.Fence, got.Version
	require.Equal(t, want, got)
	require.Equal(t, got.Version.UnixMicro(), got.Fence)
	read, err := h.Store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, want, read)
	n, err := h.Store.CountSlots(t.Context(), at(59*time.Minute))
	require.NoError(t, err)
	require.EqualValues(t, 1, n, "queries know the new expiry")
}
