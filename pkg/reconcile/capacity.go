package reconcile

import (
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// needsSlots reports whether the capacity of a Proxy with this maxLeases depends on which of its slots
// are live. At rest it does not.
func needsSlots(maxLeases int32, old *fleet.Entry, now time.Time) bool {
	switch {
	case old == nil:
		return true // nobody knows up to where there are leases
	case old.Ceiling <= maxLeases:
		return false
	}
	return old.Capacity <= maxLeases && settled(*old, now)
}

// settled reports whether nobody grants by what the entry said before any more.
func settled(old fleet.Entry, now time.Time) bool { return !now.Before(old.NarrowTime.Add(Settle)) }

// capacityOf returns how many slots may be taken and below which all live ones are. While leases from
// before maxLeases was lowered are live, the capacity is such that with them there are never more
// than maxLeases of those granted from now on. slots may be nil when needsSlots says so, or when they
// could not be read: then the answer is on the safe side.
func capacityOf(maxLeases int32, old *fleet.Entry, slots *[]store.Slot, now time.Time) (capacity, ceiling int32) {
	switch {
	case old != nil && old.Ceiling <= maxLeases:
		return maxLeases, maxLeases
	case old != nil && old.Capacity > maxLeases:
		// Slots up to the old capacity may be taken any moment, so all of them may be live.
		return 0, old.Ceiling
	case old != nil && (slots == nil || !settled(*old, now)):
		return old.Capacity, old.Ceiling
	case slots == nil:
		return 0, fleetMaxLeases
	}
	live := map[int32]bool{}
	ceiling = 0
	for _, s := range *slots {
		if n := int32(s.N); isLive(s, now) { //nolint:gosec // at most 1000
			live[n] = true
			ceiling = max(ceiling, n+1)
		}
	}
	capacity = fit(maxLeases, live)
	return capacity, max(ceiling, capacity)
}

// fleetMaxLeases is the largest maxLeases that a document may ask for.
const fleetMaxLeases = 1000

// fit returns the largest capacity such that it and the live slots at or above it are no more than
// maxLeases.
func fit(maxLeases int32, live map[int32]bool) int32 {
	above := int32(0)
	for n := range live {
		if n >= maxLeases {
			above++
		}
	}
	capacity := maxLeases
	for capacity > 0 && capacity+above > maxLeases {
		capacity--
		if live[capacity] {
			above++
		}
	}
	return capacity
}
