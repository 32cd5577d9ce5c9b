package memory

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// SlotsFrom implements store.SlotViews.
func (s *Store) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	i, end := 0, len(s.slotsOf)
	if from != "" {
		i, _ = slices.BinarySearchFunc(s.slotsOf, from, compareByPrefix)
	}
	if to != "" {
		end, _ = slices.BinarySearchFunc(s.slotsOf, to, compareByPrefix)
	}
	var out []store.Slot
	for ; i < end && len(out) < limit; i++ {
		out = append(out, s.slotsInOrder(s.slotsOf[i])...)
	}
	return out[:min(len(out), limit)], nil
}

// compareByPrefix orders proxies as the ids of their slots are: "a-1.0" before "a.0".
func compareByPrefix(a, b string) int {
	return strings.Compare(store.SlotPrefix(a), store.SlotPrefix(b))
}

// slotsInOrder returns the slots of one proxy, by document id: slot 10 before slot 2.
func (s *Store) slotsInOrder(proxy string) []store.Slot {
	have := s.slots[proxy]
	numbers := slices.SortedFunc(maps.Keys(have), func(a, b int) int { return strings.Compare(strconv.Itoa(a), strconv.Itoa(b)) })
	out := make([]store.Slot, len(numbers))
	for i, n := range numbers {
		out[i] = have[n].Slot
	}
	return out
}

// ProxySlots implements store.SlotViews.
func (s *Store) ProxySlots(ctx context.Context, proxy string) ([]store.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.slotsInOrder(proxy), nil
}

// CountSlots implements store.SlotViews.
func (s *Store) CountSlots(ctx context.Context, liveAt time.Time) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	var n int64
	for _, of := range s.slots {
		for _, have := range of {
			if have.ExpireTime.After(liveAt) {
				n++
			}
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
	for _, proxy := range s.slotsOf {
		for _, have := range s.slotsInOrder(proxy) {
			if len(out) == limit {
				return out, nil
			}
			if have.ExpireTime.Before(before) {
				out = append(out, have)
			}
		}
	}
	return out, nil
}
