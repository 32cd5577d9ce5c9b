package memory_test

import (
	"testing"
	"time"

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
