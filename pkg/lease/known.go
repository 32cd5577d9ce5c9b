package lease

import (
	"maps"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// known is what this instance has learned about slots: which are taken and until when, the versions of
// those that it took itself, and which were freed here a moment ago. All of it may be out of date; the
// store decides.
type known struct {
	mu    sync.Mutex
	taken map[place]store.Slot // without Version where this instance has not seen the document
	freed []place              // newest last

	ended map[string]bool // leases that were given back here, so that an older look does not revive them
	order []string        // of ended, oldest first
}

type place struct {
	proxy string
	n     int
}

// The bounds of what is remembered: enough for the busiest instance, little memory.
const (
	maxKnown = 200000
	maxFreed = 64
	maxEnded = 4096
)

// reserveTime is how long a slot counts as taken while it is being tried: longer than a try lasts.
const reserveTime = 30 * time.Second

func newKnown() *known { return &known{taken: map[place]store.Slot{}, ended: map[string]bool{}} }

// learn remembers a slot that somebody has, unless it was read before that lease was given back here.
func (k *known) learn(s store.Slot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended[s.LeaseID] {
		return
	}
	k.taken[place{s.Proxy, s.N}] = s
}

// reserve marks a slot as taken while it is being tried, so that no two requests of this instance try
// the same. It reports false when the slot is thought to be taken already.
func (k *known) reserve(proxy string, n int, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := place{proxy, n}
	if s, ok := k.taken[at]; ok && !takeable(s, now) {
		return false
	}
	k.taken[at] = store.Slot{Proxy: proxy, N: n, ExpireTime: now.Add(reserveTime)}
	return true
}

// forget removes a slot that turned out to be free or other than thought.
func (k *known) forget(proxy string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.taken, place{proxy, n})
}

// stale forgets what is known of a slot that the store has just shown to be free, unless this instance
// is trying it at the moment.
func (k *known) stale(proxy string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.taken[place{proxy, n}]; ok && s.LeaseID != "" {
		delete(k.taken, place{proxy, n})
	}
}

// free remembers a slot that was freed here just now, and the lease that had it.
func (k *known) free(s store.Slot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := place{s.Proxy, s.N}
	delete(k.taken, at)
	if len(k.order) == maxEnded {
		delete(k.ended, k.order[0])
		k.order = k.order[1:]
	}
	k.ended[s.LeaseID] = true
	k.order = append(k.order, s.LeaseID)
	if len(k.freed) == maxFreed {
		k.freed = k.freed[1:]
	}
	k.freed = append(k.freed, at)
}

// popFreed returns the newest freed slot that fits and that nobody has taken since, and forgets it.
func (k *known) popFreed(fits func(proxy string, n int) bool) (place, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.freed) - 1; i >= 0; i-- {
		p := k.freed[i]
		_, taken := k.taken[p]
		if !taken && !fits(p.proxy, p.n) {
			continue
		}
		k.freed = append(k.freed[:i], k.freed[i+1:]...)
		if !taken {
			return p, true
		}
	}
	return place{}, false
}

// get returns what is known of the slot under a lease id.
func (k *known) get(proxy string, n int, leaseID string) (store.Slot, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.taken[place{proxy, n}]
	return s, ok && s.LeaseID == leaseID && !s.Version.IsZero()
}

// at returns the view of taken slots at one moment: what has expired long enough ago to be taken over
// counts as free.
func (k *known) at(now time.Time) Taken { return takenAt{k, now} }

type takenAt struct {
	k   *known
	now time.Time
}

func (t takenAt) Has(proxy string, n int) bool {
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	s, ok := t.k.taken[place{proxy, n}]
	return ok && !takeable(s, t.now)
}

// takeable reports whether a slot expired so long ago that no clock disputes it.
func takeable(s store.Slot, now time.Time) bool { return now.After(s.ExpireTime.Add(Skew)) }

// trim forgets what has expired, and if need be more, when there is too much. It makes room for a while:
// each time it walks through everything.
func (k *known) trim(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.taken) < maxKnown {
		return
	}
	maps.DeleteFunc(k.taken, func(_ place, s store.Slot) bool { return takeable(s, now) })
	for at := range k.taken {
		if len(k.taken) <= maxKnown/2 {
			return
		}
		delete(k.taken, at)
	}
}
