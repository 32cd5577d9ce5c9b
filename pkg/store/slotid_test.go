package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/store"
)

func TestASlotIdNamesItsPlaceAndNoOther(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]struct {
		proxy string
		n     int
		ok    bool
	}{
		"us-east1-a.0": {"us-east1-a", 0, true},
		"a.12":         {"a", 12, true},
		"a":            {},
		"a.":           {},
		".0":           {},
		"a.01":         {},
		"a.+1":         {},
		"a.-1":         {},
		"a.1.2":        {},
		"a.x":          {},
		"":             {},
	} {
		proxy, n, ok := store.ParseSlotID(id)
		assert.Equal(t, want.ok, ok, id)
		if ok {
			assert.Equal(t, want.proxy, proxy, id)
			assert.Equal(t, want.n, n, id)
			assert.Equal(t, id, store.SlotID(proxy, n))
		}
	}
	assert.Less(t, store.SlotID("a", 10), store.SlotID("a", 2), "ids sort as strings")
}
