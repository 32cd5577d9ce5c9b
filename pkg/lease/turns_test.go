package lease

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// slowService leases the one slot of its fleet, and takes a second to do so.
func slowService(t *testing.T) *Service {
	t.Helper()
	s := &slow{Store: memory.New(time.Now), writes: time.Second}
	_, err := s.WriteShard(t.Context(), store.Shard{}, fleetOf(1, 1), nil)
	require.NoError(t, err)
	return New(Deps{Store: s, Now: time.Now})
}

func TestARequestRepeatedWhileItIsServedGetsTheSameLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slowService(t)
		var wg sync.WaitGroup
		leases := make([]Lease, 5)
		for i := range leases {
			wg.Go(func() {
				var err error
				leases[i], err = s.Acquire(t.Context(), Request{RequestID: "same", TTL: time.Minute})
				assert.NoError(t, err, "though there is but one slot")
			})
		}
		wg.Wait()
		for _, l := range leases {
			require.Equal(t, leases[0].ID, l.ID)
		}
		require.Empty(t, s.turns.busy)
	})
}

func TestARequestDoesNotWaitForItselfLongerThanItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slowService(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := s.Acquire(t.Context(), Request{RequestID: "same", TTL: time.Minute})
			assert.NoError(t, err)
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := s.Acquire(ctx, Request{RequestID: "same", TTL: time.Minute})
		wg.Wait()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
