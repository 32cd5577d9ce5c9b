package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store"
)

func requestCases() []testCase {
	return []testCase{
		{"bans are counted by distinct lease within the window", bansAreCounted},
		{"reports at the same time are all counted", bansAtOnce},
		{"an unknown request is not found", func(t *testing.T, h Harness) {
			_, err := h.Store.GetRequest(t.Context(), "none")
			require.ErrorIs(t, err, store.ErrNotFound)
		}},
	}
}

func bansAreCounted(t *testing.T, h Harness) {
	ban := func(proxy, target, lease string, d time.Duration) int {
		n, err := h.Store.RecordBan(t.Context(), proxy, target, lease, at(d), 30*time.Minute)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 1, ban("a", "shop.example", "a.0.x", 0))
	require.Equal(t, 1, ban("a", "shop.example", "a.0.x", time.Minute), "the same lease")
	require.Equal(t, 2, ban("a", "shop.example", "a.0.y", 2*time.Minute))
	require.Equal(t, 1, ban("a", "other.example", "a.0.y", 2*time.Minute))
	require.Equal(t, 1, ban("b", "shop.example", "b.0.y", 2*time.Minute))
	require.Equal(t, 3, ban("a", "shop.example", "a.1.z", 31*time.Minute))
	require.Equal(t, 2, ban("a", "shop.example", "a.2.z", 33*time.Minute), "what is older than the window is forgotten")
}

func bansAtOnce(t *testing.T, h Harness) {
	const reports = 3
	counts, errs := make([]int, reports), make([]error, reports)
	var wg sync.WaitGroup
	for i := range reports {
		wg.Go(func() {
			counts[i], errs[i] = h.Store.RecordBan(t.Context(), "a", "shop.example", fmt.Sprint("lease", i), at(0), 30*time.Minute)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, reports, slices.Max(counts), "one of them sees them all: %v", counts)
}
