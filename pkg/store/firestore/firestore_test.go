package firestore_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	emulator(t)
	var mu sync.Mutex
	var wires []*wire
	t.Run("Suite", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			s, w := open(t)
			mu.Lock()
			defer mu.Unlock()
			wires = append(wires, w)
			return storetest.Harness{Store: s, PutRaw: func(name string, doc map[string]any) {
				require.NoError(t, s.PutRaw(t.Context(), name, doc))
			}}
		})
	})
	var queries []query
	for _, w := range wires {
		queries = append(queries, w.asked()...)
	}
	everyQueryHasItsIndex(t, queries)
}
