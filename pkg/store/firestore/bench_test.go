package firestore_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	raw "cloud.google.com/go/firestore"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// BenchmarkSlotCycle takes and frees slots, in turns through the store and by the bare client with the
// same document, so that both meet the same load: what the store adds is what its time is above the
// client's.
//
//	go run ./emulator/exec -- go test ./pkg/store/firestore -run - -bench SlotCycle -benchtime 2000x
func BenchmarkSlotCycle(b *testing.B) {
	emulator(b)
	s, err := firestore.Open(b.Context(), "bench", "(default)")
	require.NoError(b, err)
	defer s.Close()
	client, err := raw.NewClient(b.Context(), "bench")
	require.NoError(b, err)
	defer client.Close()
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
			defer cancel()
			var next, byStore, byClient atomic.Int64
			done := make(chan error, callers)
			for caller := range callers {
				go func() {
					var err error
					for n := next.Add(1); err == nil && n <= int64(b.N); n = next.Add(1) {
						err = errors.Join(
							timed(&byStore, func() error { return storeCycle(ctx, s, caller) }),
							timed(&byClient, func() error { return clientCycle(ctx, client, caller) }),
						)
					}
					done <- err
				}()
			}
			for range callers {
				require.NoError(b, <-done)
			}
			b.ReportMetric(float64(byStore.Load())/1e6/float64(b.N), "store-ms/cycle")
			b.ReportMetric(float64(byClient.Load())/1e6/float64(b.N), "client-ms/cycle")
			b.ReportMetric(float64(byStore.Load())/float64(byClient.Load()), "store/client")
		})
	}
}

func timed(sum *atomic.Int64, call func() error) error {
	begin := time.Now()
	err := call()
	sum.Add(int64(time.Since(begin)))
	return err
}

func storeCycle(ctx context.Context, s *firestore.Store, n int) error {
	slot, err := s.CreateSlot(ctx, leased(n, "l"), nil)
	if err != nil {
		return err
	}
	return s.DeleteSlot(ctx, slot)
}

func clientCycle(ctx context.Context, client *raw.Client, n int) error {
	ref := client.Collection("slots").Doc(store.SlotID("raw", n))
	r, err := ref.Create(ctx, map[string]any{
		"proxy": "raw", "n": n, "leaseId": "l", "incarnation": 0, "holder": "", "requestId": "", "target": "", "rebound": false,
		"acquireTime": start, "expireTime": start, "bucket": 1,
	})
	if err != nil {
		return err
	}
	_, err = ref.Delete(ctx, raw.LastUpdateTime(r.UpdateTime))
	return err
}
