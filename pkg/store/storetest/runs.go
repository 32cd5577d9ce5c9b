package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store"
)

func runCases() []testCase {
	return []testCase{
		{"before the first run there is nothing, and that is no error", func(t *testing.T, h Harness) {
			r, err := h.Store.GetRun(t.Context())
			require.NoError(t, err)
			require.Zero(t, r)
		}},
		{"the lock has one holder until it expires", lockHasOneHolder},
		{"what a run leaves is found by the next", runLeavesSomething},
		{"an old holder cannot unlock", oldHolderCannotUnlock},
		{"one's own repeated unlock succeeds", repeatedUnlock},
		{"the lock has one winner among many", oneLockerWins},
		{"who holds the lock learns of a lost answer by asking again", lockIsAskedAgain},
		{"what nobody took cannot be freed", freeWhatNobodyTook},
		{"what callers change in their run stays theirs", runIsTheirs},
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
	require.NoError(t, h.Store.UnlockRun(t.Context(), second))
	third, err := h.Store.LockRun(t.Context(), "three", at(61*time.Second), time.Minute)
	require.NoError(t, err, "a freed lock need not expire")
	require.Greater(t, third.Fence, second.Fence)
}

func oneLockerWins(t *testing.T, h Harness) {
	const lockers = 8
	runs, errs := make([]store.Run, lockers), make([]error, lockers)
	for round := range 2 { // the document is made, then changed
		now := at(time.Duration(round) * time.Hour)
		var wg sync.WaitGroup
		for i := range lockers {
			wg.Go(func() { runs[i], errs[i] = h.Store.LockRun(t.Context(), fmt.Sprint("run", round, i), now, time.Minute) })
		}
		wg.Wait()
		holder, err := h.Store.GetRun(t.Context())
		require.NoError(t, err)
		won := 0
		for i, err := range errs {
			require.Equal(t, holder, runs[i], "the losers are told who has it")
			if err == nil {
				won++
				require.Equal(t, fmt.Sprint("run", round, i), holder.Holder)
				continue
			}
			require.ErrorIs(t, err, store.ErrLocked)
		}
		require.Equal(t, 1, won)
	}
}

func lockIsAskedAgain(t *testing.T, h Harness) {
	mine, err := h.Store.LockRun(t.Context(), "mine", at(0), time.Minute)
	require.NoError(t, err)
	again, err := h.Store.LockRun(t.Context(), "mine", at(time.Second), time.Minute)
	require.ErrorIs(t, err, store.ErrLocked)
	require.Equal(t, mine, again)
	require.NoError(t, h.Store.UnlockRun(t.Context(), again))
}

func freeWhatNobodyTook(t *testing.T, h Harness) {
	require.ErrorIs(t, h.Store.UnlockRun(t.Context(), store.Run{}), store.ErrConflict)
	r, err := h.Store.GetRun(t.Context())
	require.NoError(t, err)
	require.Zero(t, r)
}

func runIsTheirs(t *testing.T, h Harness) {
	r, err := h.Store.LockRun(t.Context(), "one", at(0), time.Minute)
	require.NoError(t, err)
	r.Cursor, r.EndTime, r.Summary = "m", at(time.Second), []byte(`{"a":1}`)
	r.Orphans = map[string]time.Time{"mock/a": at(999 * time.Nanosecond)}
	r.Cooldowns = map[string]time.Time{}
	require.NoError(t, h.Store.UnlockRun(t.Context(), r))
	first, err := h.Store.GetRun(t.Context())
	require.NoError(t, err)
	require.Equal(t, at(0), first.Orphans["mock/a"])
	want := picture(t, first)
	spoil(&r)
	require.Equal(t, want, picture(t, first))
	spoil(&first)
	again, err := h.Store.GetRun(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, picture(t, again))
	locked, err := h.Store.LockRun(t.Context(), "two", at(time.Hour), time.Minute)
	require.NoError(t, err)
	want = picture(t, locked)
	spoil(&locked)
	again, err = h.Store.LockRun(t.Context(), "three", at(time.Hour), time.Minute)
	require.ErrorIs(t, err, store.ErrLocked)
	require.Equal(t, want, picture(t, again))
	spoil(&again)
	again, err = h.Store.GetRun(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, picture(t, again))
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
