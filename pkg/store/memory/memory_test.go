package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
	"crawl.example.com/proxyfleet/pkg/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Harness {
		s := memory.New(time.Now)
		return storetest.Harness{Store: s, PutRaw: s.PutRaw}
	})
}

func TestVersionsGrowThoughTheClockStandsStillOrGoesBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 999, time.FixedZone("east", 3600))
	s := memory.New(func() time.Time { return now })
	last := time.Time{}
	for n := range 5 {
		if n == 3 {
			now = now.Add(-time.Hour)
		}
		p, err := s.CreateProxy(t.Context(), fmt.Sprint("p", n), store.Edit{Spec: map[string]any{"mode": "External"}})
		require.NoError(t, err)
		assert.True(t, p.UpdateTime.After(last))
		assert.Equal(t, p.UpdateTime, p.UpdateTime.UTC().Truncate(time.Microsecond))
		last = p.UpdateTime
	}
	slot, err := s.CreateSlot(t.Context(), store.Slot{Proxy: "p0", LeaseID: "x"}, nil)
	require.NoError(t, err)
	assert.Greater(t, slot.Fence, last.UnixMicro())
}

// TestTheHookSeesEverySlotWriteInOrder rebuilds the store from what the hook told.
func TestTheHookSeesEverySlotWriteInOrder(t *testing.T) {
	t.Parallel()
	s := memory.New(time.Now)
	held := map[string]store.Slot{}
	var last time.Time
	writes := 0
	s.OnSlot(func(w memory.SlotWrite) { // under the store's lock: no other is needed
		writes++
		assert.True(t, w.Time.After(last))
		last = w.Time
		if w.Old != nil {
			id := store.SlotID(w.Old.Proxy, w.Old.N)
			assert.Equal(t, held[id], *w.Old)
			delete(held, id)
		}
		if w.New != nil {
			held[store.SlotID(w.New.Proxy, w.New.N)] = *w.New
		}
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				got, err := s.CreateSlot(t.Context(), store.Slot{Proxy: "p", N: (i + n) % 6, LeaseID: fmt.Sprint(i, n)}, nil)
				if err != nil {
					continue
				}
				got.ExpireTime = time.Now()
				got, err = s.ReplaceSlot(t.Context(), got, nil)
				assert.NoError(t, err)
				if n < 49 {
					assert.NoError(t, s.DeleteSlot(t.Context(), got))
				}
			}
		})
	}
	wg.Wait()
	left, err := s.ProxySlots(t.Context(), "p")
	require.NoError(t, err)
	assert.Len(t, held, len(left))
	for _, slot := range left {
		assert.Equal(t, held[store.SlotID(slot.Proxy, slot.N)], slot)
	}
	assert.Greater(t, writes, 400)
}

func TestASpecOfAnyGoTypesIsReadAsFirestoreWouldGiveIt(t *testing.T) {
	t.Parallel()
	s := memory.New(time.Now)
	spec := map[string]any{
		"mode": "Managed", "provider": "mock", "maxLeases": int32(3), "placement": map[string]any{"zones": []string{"a", "b"}},
		"cloudInit": map[string]map[string]string{"secretRef": {"name": "n", "key": "k"}}, "paused": true,
	}
	p, err := s.CreateProxy(t.Context(), "a", store.Edit{Spec: spec})
	require.NoError(t, err)
	require.Empty(t, p.Broken)
	assert.EqualValues(t, 3, *p.Spec.MaxLeases)
	assert.Equal(t, []string{"a", "b"}, p.Spec.Placement.Zones)
	assert.Equal(t, "k", p.Spec.CloudInit.SecretRef.Key)
}

func BenchmarkSlotCycle(b *testing.B) {
	for _, proxies := range []int{1000, 10000} {
		b.Run(fmt.Sprint(proxies), func(b *testing.B) {
			s := memory.New(time.Now)
			for p := range proxies {
				for n := range 4 {
					_, err := s.CreateSlot(b.Context(), store.Slot{Proxy: fmt.Sprint("p", p), N: n}, nil)
					require.NoError(b, err)
				}
			}
			for i := 0; b.Loop(); i++ {
				got, err := s.CreateSlot(b.Context(), store.Slot{Proxy: fmt.Sprint("p", i%proxies), N: 4}, nil)
				require.NoError(b, err)
				require.NoError(b, s.DeleteSlot(b.Context(), got))
			}
		})
	}
}

func BenchmarkListProxies(b *testing.B) {
	s := memory.New(time.Now)
	for n := range 10000 {
		_, err := s.CreateProxy(b.Context(), fmt.Sprint("p", n), store.Edit{Spec: map[string]any{"mode": "External", "endpoint": map[string]any{"host": "h"}}})
		require.NoError(b, err)
	}
	for b.Loop() {
		_, err := s.ListProxies(b.Context())
		require.NoError(b, err)
	}
}
