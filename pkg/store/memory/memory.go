// Package memory is a store in this process, with the same promises as the one on Firestore.
package memory

import (
	"context"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// Store implements store.Store. What it holds is lost with the process.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	last     time.Time // the latest commit
	proxies  map[string]*document
	slots    map[string]map[int]slot // by proxy; one that has no slots any more stays, empty
	slotsOf  []string                // the keys of slots, in the order of their slots' ids
	requests map[string]store.Request
	bans     map[banKey][]ban
	shards   map[int]*shard
	run      store.Run
	onSlot   func(SlotWrite)
}

var _ store.Store = (*Store)(nil)

// New returns an empty store whose commits happen at the time that now tells, a microsecond apart
// at least.
func New(now func() time.Time) *Store {
	return &Store{
		now: now, proxies: map[string]*document{}, slots: map[string]map[int]slot{}, requests: map[string]store.Request{},
		bans: map[banKey][]ban{}, shards: map[int]*shard{},
	}
}

// SlotWrite is one commit on a slot, for tests which check what leases did to it. Old is nil when it was
// free, New when it became free.
type SlotWrite struct {
	Time     time.Time
	Old, New *store.Slot
}

// OnSlot has f called with every commit on a slot, in their order, while the store is locked: f must
// not call the store.
func (s *Store) OnSlot(f func(SlotWrite)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSlot = f
}

// lock begins one atomic operation. The caller unlocks unless there is an error.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	return nil
}

// commit returns the time of the next commit: it only grows.
func (s *Store) commit() time.Time {
	t := micros(s.now())
	if !t.After(s.last) {
		t = s.last.Add(time.Microsecond)
	}
	s.last = t
	return t
}

func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
