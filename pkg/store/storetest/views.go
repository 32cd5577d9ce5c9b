package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store"
)

func viewCases() []testCase {
	return []testCase{
		{"the slots of one proxy, and of no other", slotsOfOneProxy},
		{"a window of slots is in order, bounded and limited", windowOfSlots},
		{"live slots are counted", liveAreCounted},
		{"expired slots are found", expiredAreFound},
		{"a renewed slot is no longer among the expired", renewedIsNotExpired},
		{"views of an empty fleet are empty", emptyViews},
	}
}

func slotsOfOneProxy(t *testing.T, h Harness) {
	for _, name := range []string{"a", "a-1", "a0", "b"} {
		for _, n := range []int{999, 0, 10, 9} {
			take(t, h.Store, name, n, name)
		}
	}
	got, err := h.Store.ProxySlots(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []string{"a.0", "a.10", "a.9", "a.999"}, slotIDs(got))
	got, err = h.Store.ProxySlots(t.Context(), "none")
	require.NoError(t, err)
	require.Empty(t, got)
}

func slotIDs(slots []store.Slot) []string {
	var out []string
	for _, s := range slots {
		out = append(out, store.SlotID(s.Proxy, s.N))
	}
	return out
}

func windowOfSlots(t *testing.T, h Harness) {
	for _, name := range []string{"b", "a", "c", "a-1"} {
		for _, n := range []int{2, 10, 0} {
			take(t, h.Store, name, n, name)
		}
	}
	all := []string{"a-1.0", "a-1.10", "a-1.2", "a.0", "a.10", "a.2", "b.0", "b.10", "b.2", "c.0", "c.10", "c.2"}
	for _, row := range []struct {
		from, to string
		limit    int
		want     []string
	}{
		{"", "", 100, all},
		{"", "", 4, all[:4]},
		{"a", "", 100, all[3:]},
		{"a", "c", 100, all[3:9]},
		{"a", "c", 2, all[3:5]},
		{"a", "a0", 100, all[3:6]},
		{"d", "", 100, nil},
		{"a", "a", 100, nil},
		{"c", "a", 100, nil},
		{"a0", "b", 100, nil},
	} {
		got, err := h.Store.SlotsFrom(t.Context(), row.from, row.to, row.limit)
		require.NoError(t, err)
		require.Equal(t, row.want, slotIDs(got), "%+v", row)
	}
}

func liveAreCounted(t *testing.T, h Harness) {
	for n := range 5 {
		s := slot("a", n, fmt.Sprint(n))
		s.ExpireTime = at(time.Duration(n) * time.Minute)
		_, err := h.Store.CreateSlot(t.Context(), s, nil)
		require.NoError(t, err)
	}
	for d, want := range map[time.Duration]int64{-time.Minute: 5, 0: 4, 3 * time.Minute: 1, 4*time.Minute - time.Microsecond: 1, 4 * time.Minute: 0} {
		n, err := h.Store.CountSlots(t.Context(), at(d))
		require.NoError(t, err)
		require.Equal(t, want, n, d)
	}
}

func expiredAreFound(t *testing.T, h Harness) {
	for n := range 20 {
		s := slot("a", n, fmt.Sprint(n))
		s.ExpireTime = at(time.Duration(n) * time.Minute)
		_, err := h.Store.CreateSlot(t.Context(), s, nil)
		require.NoError(t, err)
	}
	got, err := h.Store.ExpiredSlots(t.Context(), at(7*time.Minute), 100)
	require.NoError(t, err)
	require.Len(t, got, 7)
	for _, s := range got {
		require.True(t, s.ExpireTime.Before(at(7*time.Minute)))
		require.NoError(t, h.Store.DeleteSlot(t.Context(), s), "versions are those of the documents")
	}
	got, err = h.Store.ExpiredSlots(t.Context(), at(time.Hour), 5)
	require.NoError(t, err)
	require.Len(t, got, 5)
}

func renewedIsNotExpired(t *testing.T, h Harness) {
	s := take(t, h.Store, "a", 0, "one")
	s.ExpireTime = at(time.Hour)
	_, err := h.Store.ReplaceSlot(t.Context(), s, nil)
	require.NoError(t, err)
	got, err := h.Store.ExpiredSlots(t.Context(), at(30*time.Minute), 10)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = h.Store.ExpiredSlots(t.Context(), at(time.Hour), 10)
	require.NoError(t, err)
	require.Empty(t, got, "what expires at a time did not expire before it")
	got, err = h.Store.ExpiredSlots(t.Context(), at(time.Hour+time.Microsecond), 10)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

func emptyViews(t *testing.T, h Harness) {
	got, err := h.Store.SlotsFrom(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = h.Store.ExpiredSlots(t.Context(), at(0), 10)
	require.NoError(t, err)
	require.Empty(t, got)
	n, err := h.Store.CountSlots(t.Context(), at(0))
	require.NoError(t, err)
	require.Zero(t, n)
}
