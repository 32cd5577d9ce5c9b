package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// CreateSlot implements store.Slots.
func (s *Store) CreateSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return slot, err
	}
	defer s.mu.Unlock()
	id := store.SlotID(slot.Proxy, slot.N)
	if _, ok := s.slots[id]; ok || s.requestExists(req) {
		return slot, store.ErrExists
	}
	at := s.commit()
	slot.Fence, slot.Version = at.UnixMicro(), at
	i, _ := slices.BinarySearch(s.slotIDs, id)
	s.slotIDs = slices.Insert(s.slotIDs, i, id)
	s.writeSlot(id, nil, &slot, req)
	return slot, nil
}

// ReplaceSlot implements store.Slots.
func (s *Store) ReplaceSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return slot, err
	}
	defer s.mu.Unlock()
	id := store.SlotID(slot.Proxy, slot.N)
	have, ok := s.slots[id]
	if !ok || !have.Version.Equal(slot.Version) {
		return slot, store.ErrConflict
	}
	if s.requestExists(req) {
		return slot, store.ErrExists
	}
	slot.Version = s.commit()
	if slot.Fence == 0 {
		slot.Fence = slot.Version.UnixMicro()
	}
	s.writeSlot(id, &have, &slot, req)
	return slot, nil
}

func (s *Store) requestExists(req *store.Request) bool {
	if req == nil {
		return false
	}
	_, ok := s.requests[req.Key]
	return ok
}

func (s *Store) writeSlot(id string, old, slot *store.Slot, req *store.Request) {
	slot.AcquireTime, slot.ExpireTime = micros(slot.AcquireTime), micros(slot.ExpireTime)
	s.slots[id] = *slot
	if req != nil {
		r := *req
		r.ExpireTime = micros(r.ExpireTime)
		s.requests[r.Key] = r
	}
	s.note(old, slot)
}

func (s *Store) note(old, slot *store.Slot) {
	if s.onSlot != nil {
		s.onSlot(SlotWrite{Time: s.last, Old: old, New: slot})
	}
}

// DeleteSlot implements store.Slots.
func (s *Store) DeleteSlot(ctx context.Context, slot store.Slot) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	id := store.SlotID(slot.Proxy, slot.N)
	have, ok := s.slots[id]
	if !ok || !have.Version.Equal(slot.Version) {
		return store.ErrConflict
	}
	s.commit()
	delete(s.slots, id)
	if i, found := slices.BinarySearch(s.slotIDs, id); found {
		s.slotIDs = slices.Delete(s.slotIDs, i, i+1)
	}
	s.note(&have, nil)
	return nil
}

// GetSlot implements store.Slots.
func (s *Store) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return store.Slot{}, err
	}
	defer s.mu.Unlock()
	slot, ok := s.slots[store.SlotID(proxy, n)]
	if !ok {
		return store.Slot{}, store.ErrNotFound
	}
	return slot, nil
}

// SlotsFrom implements store.SlotViews.
func (s *Store) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	i := 0
	if from != "" {
		i, _ = slices.BinarySearch(s.slotIDs, store.SlotPrefix(from))
	}
	var out []store.Slot
	for ; i < len(s.slotIDs) && len(out) < limit; i++ {
		if to != "" && s.slotIDs[i] >= store.SlotPrefix(to) {
			break
		}
		out = append(out, s.slots[s.slotIDs[i]])
	}
	return out, nil
}

// ProxySlots implements store.SlotViews.
func (s *Store) ProxySlots(ctx context.Context, proxy string) ([]store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	prefix := store.SlotPrefix(proxy)
	i, _ := slices.BinarySearch(s.slotIDs, prefix)
	var out []store.Slot
	for ; i < len(s.slotIDs) && strings.HasPrefix(s.slotIDs[i], prefix); i++ {
		out = append(out, s.slots[s.slotIDs[i]])
	}
	return out, nil
}

// CountSlots implements store.SlotViews.
func (s *Store) CountSlots(ctx context.Context, liveAt time.Time) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	var n int64
	for _, slot := range s.slots {
		if slot.ExpireTime.After(liveAt) {
			n++
		}
	}
	return n, nil
}

// ExpiredSlots implements store.SlotViews.
func (s *Store) ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Slot
	for _, id := range s.slotIDs {
		if len(out) == limit {
			break
		}
		if slot := s.slots[id]; slot.ExpireTime.Before(before) {
			out = append(out, slot)
		}
	}
	return out, nil
}

func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
