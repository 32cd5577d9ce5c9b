package lease

import (
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// known is what this instance has learned about slots: which are taken and until when, the versions of
// those that it took itself, and which were freed here a moment ago. All of it may be out of date; the
// store decides.
type known struct {
	mu    sync.Mutex
	taken map[string]map[int]knownSlot // by proxy and slot
	freed []place                      // newest last
	total int
}

type knownSlot struct {
	slot store.Slot // LeaseID and Version are set only where this instance has seen the document
}

type place struct {
	proxy string
	n     int
}

// The bounds of what is remembered: enough for the busiest instance, little memory.
const (
	maxKnown = 200000
	maxFreed = 64
)

func newKnown() *known { return &known{taken: map[string]map[int]knownSlot{}} }

// learn remembers a slot that somebody has.
func (k *known) learn(s store.Slot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	slots := k.taken[s.Proxy]
	if slots == nil {
		slots = map[int]knownSlot{}
		k.taken[s.Proxy] = slots
	}
	if _, ok := slots[s.N]; !ok {
		k.total++
	}
	slots[s.N] = knownSlot{slot: s}
}

// forget removes a slot that turned out to be free or other than thought.
func (k *known) forget(proxy string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(proxy, n)
}

func (k *known) remove(proxy string, n int) {
	if _, ok := k.taken[proxy][n]; !ok {
		return
	}
	k.total--
	delete(k.taken[proxy], n)
	if len(k.taken[proxy]) == 0 {
		delete(k.taken, proxy)
	}
}

// free remembers a slot that was freed here just now.
func (k *known) free(proxy string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(proxy, n)
	if len(k.freed) == maxFreed {
		k.freed = k.freed[1:]
	}
	k.freed = append(k.freed, place{proxy, n})
}

// popFreed returns the newest freed slot that fits, and forgets it.
func (k *known) popFreed(fits func(proxy string, n int) bool) (place, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.freed) - 1; i >= 0; i-- {
		p := k.freed[i]
		if !fits(p.proxy, p.n) {
			continue
		}
		k.freed = append(k.freed[:i], k.freed[i+1:]...)
		if _, taken := k.taken[p.proxy][p.n]; !taken {
			return p, true
		}
	}
	return place{}, false
}

// get returns what is known of the slot under a lease id.
func (k *known) get(proxy string, n int, leaseID string) (store.Slot, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.taken[proxy][n]
	return s.slot, ok && s.slot.LeaseID == leaseID && !s.slot.Version.IsZero()
}

// at returns the view of taken slots at one moment: what has expired long enough ago to be taken over is
// forgotten on the way.
func (k *known) at(now time.Time) Taken { return takenAt{k, now} }

type takenAt struct {
	k   *known
	now time.Time
}

func (t takenAt) Count(proxy string) int {
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	n := 0
	for i, s := range t.k.taken[proxy] {
		if takeable(s.slot, t.now) {
			t.k.remove(proxy, i)
			continue
		}
		n++
	}
	return n
}

func (t takenAt) Has(proxy string, n int) bool {
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	_, ok := t.k.taken[proxy][n]
	return ok
}

// takeable reports whether a slot expired so long ago that no clock disputes it.
func takeable(s store.Slot, now time.Time) bool { return now.After(s.ExpireTime.Add(Skew)) }

// trim forgets what has expired when there is too much.
func (k *known) trim(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.total < maxKnown {
		return
	}
	for proxy, slots := range k.taken {
		for n, s := range slots {
			if takeable(s.slot, now) || k.total >= maxKnown {
				k.remove(proxy, n)
			}
		}
	}
}
