package storetest

import (
	"context"
	"strings"
	"sync"

	"crawl.example.com/proxyfleet/pkg/store"
)

// Counted is a store that counts its calls, and documents as Firestore bills them.
type Counted struct {
	store.Store

	mu     sync.Mutex
	calls  map[string]int
	reads  map[string]int
	writes map[string]int
}

// Counting returns s, counted.
func Counting(s store.Store) *Counted {
	c := &Counted{}
	c.Reset()
	c.Store = Around(s, nil, c.count)
	return c
}

func (c *Counted) count(_ context.Context, call Call, _ error) error {
	collection, _, _ := strings.Cut(call.Doc, "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[call.Method]++
	c.reads[collection] += call.Reads
	c.writes[collection] += call.Writes
	return nil
}

// Reset starts counting anew.
func (c *Counted) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.reads, c.writes = map[string]int{}, map[string]int{}, map[string]int{}
}

// Calls returns how often the methods were called, all of them when none is named.
func (c *Counted) Calls(methods ...string) int { return c.sum(c.calls, methods) }

// Reads returns how many documents of the collections were read, of all when none is named: a query or
// a look at an absent document counts as one at least.
func (c *Counted) Reads(collections ...string) int { return c.sum(c.reads, collections) }

// Writes returns how many documents of the collections were asked to be written or deleted, of all
// when none is named. A request committed with a slot counts as one of slots.
func (c *Counted) Writes(collections ...string) int { return c.sum(c.writes, collections) }

func (c *Counted) sum(of map[string]int, keys []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, key := range keys {
		n += of[key]
	}
	if len(keys) == 0 {
		for _, v := range of {
			n += v
		}
	}
	return n
}
