package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func half() float64 { return 0.5 }

func TestWhoMayWaitIsNotHeldUpWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var wg sync.WaitGroup
		began := time.Now()
		for range 100 {
			wg.Go(func() {
				_, err := q.wait(t.Context(), "", 30*time.Second, half, func() (Lease, error) {
					time.Sleep(20 * time.Millisecond) // a call to the store
					return Lease{}, nil
				})
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Equal(t, 20*time.Millisecond, time.Since(began), "all at once")
		require.Empty(t, q.lines)
	})
}

func TestALineDissolvesQuicklyWhenRoomComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var room atomic.Bool
		var tries atomic.Int64
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				_, err := q.wait(t.Context(), "", 30*time.Second, half, func() (Lease, error) {
					tries.Add(1)
					time.Sleep(20 * time.Millisecond)
					if room.Load() {
						return Lease{}, nil
					}
					return Lease{}, refuse(NoCapacity, "full")
				})
				require.NoError(t, err)
			})
		}
		time.Sleep(10 * time.Second)
		require.Less(t, tries.Load(), int64(250), "while there is no room one of them asks")
		room.Store(true)
		began := time.Now()
		q.wake()
		wg.Wait()
		require.Less(t, time.Since(began), time.Second)
		require.Empty(t, q.lines)
	})
}

func TestNewcomersStandAtTheEndOfALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var free atomic.Bool
		order := make(chan int, 3)
		try := func() (Lease, error) {
			if free.CompareAndSwap(true, false) {
				return Lease{}, nil
			}
			return Lease{}, refuse(NoCapacity, "full")
		}
		for i := range 3 {
			go func() {
				if _, err := q.wait(t.Context(), "", 30*time.Second, half, try); err == nil {
					order <- i
				}
			}()
			synctest.Wait()
		}
		for i := range 3 {
			time.Sleep(time.Second)
			free.Store(true)
			q.wake()
			synctest.Wait()
			require.Equal(t, i, <-order)
		}
	})
}

func TestTwoLinesDoNotHoldEachOtherUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			_, _ = q.wait(ctx, "full", 30*time.Second, half, func() (Lease, error) { return Lease{}, refuse(NoCapacity, "full") })
		}()
		synctest.Wait()
		_, err := q.wait(t.Context(), "free", 30*time.Second, half, func() (Lease, error) { return Lease{}, nil })
		require.NoError(t, err)
	})
}

func TestWaitingOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		began := time.Now()
		_, err := q.wait(t.Context(), "", 30*time.Second, half, func() (Lease, error) {
			if time.Since(began) < 10*time.Second {
				return Lease{}, away(context.DeadlineExceeded)
			}
			return Lease{}, nil
		})
		require.NoError(t, err)
		require.Less(t, time.Since(began), 11*time.Second)
	})
}
