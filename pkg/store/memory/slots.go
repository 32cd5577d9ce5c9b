package memory

import (
	"context"
	"slices"

	"crawl.example.com/proxyfleet/pkg/store"
)

// slot is one stored slot.
type slot struct {
	store.Slot
	renewed bool // its fence is stored: before the first renewal it is the time of the commit
}

// CreateSlot implements store.Slots.
func (s *Store) CreateSlot(ctx context.Context, want store.Slot, req *store.Request) (store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return want, err
	}
	defer s.mu.Unlock()
	if _, ok := s.slots[want.Proxy][want.N]; ok || s.requestExists(req) {
		return want, store.ErrExists
	}
	want.Version = s.commit()
	want.Fence = want.Version.UnixMicro()
	return s.writeSlot(nil, slot{Slot: want}, req), nil
}

// ReplaceSlot implements store.Slots.
func (s *Store) ReplaceSlot(ctx context.Context, want store.Slot, req *store.Request) (store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return want, err
	}
	defer s.mu.Unlock()
	have, ok := s.slots[want.Proxy][want.N]
	if !ok || !have.Version.Equal(want.Version) {
		return want, store.ErrConflict
	}
	if s.requestExists(req) {
		return want, store.ErrExists
	}
	want.AcquireTime, want.ExpireTime = micros(want.AcquireTime), micros(want.ExpireTime)
	want.Version = have.Version
	next := slot{Slot: want, renewed: want.Fence != 0}
	if next != have { // what changes nothing keeps the version
		next.Version = s.commit()
	}
	if !next.renewed {
		next.Fence = next.Version.UnixMicro()
	}
	return s.writeSlot(&have.Slot, next, req), nil
}

func (s *Store) requestExists(req *store.Request) bool {
	if req == nil {
		return false
	}
	_, ok := s.requests[req.Key]
	return ok
}

// writeSlot is the commit of a slot, and of the request that it answers. It returns the slot as it is
// stored.
func (s *Store) writeSlot(old *store.Slot, want slot, req *store.Request) store.Slot {
	want.AcquireTime, want.ExpireTime = micros(want.AcquireTime), micros(want.ExpireTime)
	if s.slots[want.Proxy] == nil {
		s.slots[want.Proxy] = map[int]slot{}
		i, _ := slices.BinarySearchFunc(s.slotsOf, want.Proxy, compareByPrefix)
		s.slotsOf = slices.Insert(s.slotsOf, i, want.Proxy)
	}
	s.slots[want.Proxy][want.N] = want
	if req != nil {
		r := *req
		r.ExpireTime = micros(r.ExpireTime)
		s.requests[r.Key] = r
	}
	s.note(old, &want.Slot)
	return want.Slot
}

func (s *Store) note(old, now *store.Slot) {
	if s.onSlot != nil {
		s.onSlot(SlotWrite{Time: s.last, Old: old, New: now})
	}
}

// DeleteSlot implements store.Slots.
func (s *Store) DeleteSlot(ctx context.Context, want store.Slot) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	have, ok := s.slots[want.Proxy][want.N]
	if !ok || !have.Version.Equal(want.Version) {
		return store.ErrConflict
	}
	s.commit()
	delete(s.slots[want.Proxy], want.N)
	s.note(&have.Slot, nil)
	return nil
}

// GetSlot implements store.Slots.
func (s *Store) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return store.Slot{}, err
	}
	defer s.mu.Unlock()
	have, ok := s.slots[proxy][n]
	if !ok {
		return store.Slot{}, store.ErrNotFound
	}
	return have.Slot, nil
}
