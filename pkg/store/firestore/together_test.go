package firestore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

const together = "BatchWrite"

// gate holds up the commits that go first, so that what follows has to wait for them.
type gate struct {
	held chan struct{} // one value per call that is held
	open chan struct{}
}

func holdCommits(w *wire, n int) *gate {
	g := &gate{held: make(chan struct{}, n), open: make(chan struct{})}
	w.hold(func(method string) {
		if method != commit {
			return
		}
		select {
		case g.held <- struct{}{}:
			<-g.open
		default: // as many as wanted are held
		}
	})
	return g
}

// crowd takes slots from 100 on until as many commits are under way as go alone; they are held.
func crowd(t *testing.T, s *firestore.Store, w *wire) (g *gate, wait func()) {
	t.Helper()
	g = holdCommits(w, firestore.AloneAtOnce)
	var wg sync.WaitGroup
	for n := range firestore.AloneAtOnce {
		wg.Go(func() {
			_, err := s.CreateSlot(t.Context(), leased(100+n, "first"), nil)
			assert.NoError(t, err)
		})
	}
	eventually(t, func() bool { return len(g.held) == firestore.AloneAtOnce })
	return g, wg.Wait
}

func eventually(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, time.Minute, time.Millisecond)
}

func waiting(t *testing.T, s *firestore.Store, n int) {
	t.Helper()
	eventually(t, func() bool { return firestore.Waiting(s) == n })
}

func TestWritesOfManyCallersGoTogetherAndAreAnsweredEach(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	taken, err := s.CreateSlot(t.Context(), leased(0, "other"), nil)
	require.NoError(t, err)
	w.took()
	g, wait := crowd(t, s, w)
	var wg sync.WaitGroup
	slots := make([]store.Slot, 10)
	errs := make([]error, 10)
	for n := range 10 { // the first one is taken
		wg.Go(func() { slots[n], errs[n] = s.CreateSlot(t.Context(), leased(n, fmt.Sprint("l", n)), nil) })
	}
	stale := taken
	stale.Version = stale.Version.Add(-time.Second)
	wg.Go(func() { assert.ErrorIs(t, s.DeleteSlot(t.Context(), stale), store.ErrConflict) })
	wg.Go(func() { assert.ErrorIs(t, s.DeleteSlot(t.Context(), leased(50, "absent")), store.ErrConflict) })
	waiting(t, s, 12)
	close(g.open)
	wg.Wait()
	wait()
	require.ErrorIs(t, errs[0], store.ErrExists)
	for n := 1; n < 10; n++ {
		require.NoError(t, errs[n])
		have, err := s.GetSlot(t.Context(), "a", n)
		require.NoError(t, err)
		require.Equal(t, slots[n], have, "as it would be alone: version and fencing token, too")
		require.NoError(t, s.DeleteSlot(t.Context(), slots[n]))
	}
	calls := w.took()
	assert.Contains(t, calls, together)
	assert.Less(t, len(slices.DeleteFunc(calls, func(c string) bool { return c != together })), 4, "three calls at most, as two are for one document")
	require.NoError(t, s.DeleteSlot(t.Context(), taken), "nobody touched it")
}

func TestWritesOfOneDocumentNeverGoTogether(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	g, wait := crowd(t, s, w)
	var wg sync.WaitGroup
	var won atomic.Int64
	for n := range 12 {
		wg.Go(func() {
			_, err := s.CreateSlot(t.Context(), leased(0, fmt.Sprint("l", n)), nil)
			if err == nil {
				won.Add(1)
			} else {
				assert.ErrorIs(t, err, store.ErrExists)
			}
		})
	}
	waiting(t, s, 12)
	close(g.open)
	wg.Wait()
	wait()
	require.EqualValues(t, 1, won.Load())
	require.NotContains(t, w.took(), together)
}

func TestWhatACallTogetherLeavesOpenIsDoneAlone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		made bool // before the reply was lost
	}{{"it was never made", false}, {"its reply was lost", true}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, w := open(t)
			g, wait := crowd(t, s, w)
			lose := func(method string) error {
				if method == together {
					return status.Error(codes.PermissionDenied, "not together")
				}
				return nil
			}
			if row.made {
				w.breaks(nil, lose)
			} else {
				w.breaks(lose, nil)
			}
			var wg sync.WaitGroup
			for n := range 5 {
				wg.Go(func() {
					_, err := s.CreateSlot(t.Context(), leased(n, "mine"), nil)
					if row.made {
						assert.ErrorIs(t, err, store.ErrExists) // and is one's own, as after a commit that was repeated
					} else {
						assert.NoError(t, err)
					}
				})
			}
			waiting(t, s, 5)
			close(g.open)
			wg.Wait()
			wait()
			for n := range 5 {
				have, err := s.GetSlot(t.Context(), "a", n)
				require.NoError(t, err)
				require.Equal(t, "mine", have.LeaseID)
			}
		})
	}
}

func TestAWriteWhoseCallerLeftWhileItWaitedIsNotMade(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	g, wait := crowd(t, s, w)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := s.CreateSlot(ctx, leased(0, "gone"), nil)
		left <- err
	}()
	waiting(t, s, 1)
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Zero(t, firestore.Waiting(s))
	close(g.open)
	wait()
	_, err := s.GetSlot(t.Context(), "a", 0)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestAWriteWithLittleTimeWaitsForNoOther(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	g, wait := crowd(t, s, w)
	w.hold(nil)
	ctx, cancel := context.WithTimeout(t.Context(), firestore.LeastLeft-time.Millisecond)
	defer cancel()
	_, err := s.CreateSlot(ctx, leased(0, "hurried"), nil)
	require.NoError(t, err)
	close(g.open)
	wait()
}

func TestMoreWaitThanGoTogether(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	g, wait := crowd(t, s, w)
	const many = 3*firestore.MostTogether + 1
	var wg sync.WaitGroup
	for n := range many {
		wg.Go(func() {
			slot, err := s.CreateSlot(t.Context(), leased(n, "l"), nil)
			if assert.NoError(t, err) {
				assert.NoError(t, s.DeleteSlot(t.Context(), slot))
			}
		})
	}
	waiting(t, s, many)
	close(g.open)
	wg.Wait()
	wait()
	require.Zero(t, firestore.Waiting(s))
	n, err := s.CountSlots(t.Context(), start)
	require.NoError(t, err)
	require.EqualValues(t, firestore.AloneAtOnce, n)
	eventually(t, func() bool { return firestore.UnderWay(s) == 0 }) // or else fewer and fewer would go at once
}
