package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// How many operations a race makes. Under the race detector, and with -short, it makes fewer.
const (
	raceOperations          = 1000000 / slower
	raceFirestoreOperations = 20000 / slower
)

// crawlers and instances of the race: four instances, each with clocks of their own, up to a second off.
const (
	raceCrawlers  = 64
	raceInstances = 4
	raceSkew      = time.Second
)

// TestLeaseRace has crawlers acquire, renew, report, release, die, repeat and come late, while the
// fleet changes and drains, and checks after every commit that no proxy has more live leases than it
// ever allowed at that moment.
func TestLeaseRace(t *testing.T) {
	operations := raceOperations
	if testing.Short() {
		operations /= 10
	}
	var ticks atomic.Int64 // simulated milliseconds
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	now := func() time.Time { return start.Add(time.Duration(ticks.Load()) * time.Millisecond) }
	s := memory.New(now)
	w := newWitness(t)
	s.OnSlot(func(c memory.SlotWrite) { w.commit(c.Time, c.Old, c.New) })
	w.race(s, now, &ticks, operations)
	fmt.Printf("lease_race operations=%d overcommit=%d lost=%d store=memory\n", operations, w.overcommit, w.lost)
	require.Zero(t, w.overcommit, w.first)
	require.Zero(t, w.lost, w.first)
	require.Positive(t, w.takeovers, "the race must have dead crawlers replaced")
}

// TestLeaseRaceOnFirestore is the same race on the emulator, where the history is what each write's
// own versions tell.
func TestLeaseRaceOnFirestore(t *testing.T) {
	if os.Getenv("FIRESTORE_EMULATOR_HOST") == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("FIRESTORE_EMULATOR_HOST must be set where CI is: run make test")
		}
		t.Skip("SKIPPED: no Firestore emulator; run make test, or set FIRESTORE_EMULATOR_HOST")
	}
	operations := raceFirestoreOperations
	if testing.Short() {
		operations /= 10
	}
	s, err := firestore.Open(t.Context(), fmt.Sprintf("race-%d", rand.Int64()), "(default)")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	var ticks atomic.Int64
	start := time.Now()
	now := func() time.Time { return start.Add(time.Duration(ticks.Load()) * time.Millisecond) }
	w := newWitness(t)
	w.race(&history{Store: s, w: w}, now, &ticks, operations)
	w.replay()
	fmt.Printf("lease_race operations=%d overcommit=%d lost=%d store=firestore\n", operations, w.overcommit, w.lost)
	require.Zero(t, w.overcommit, w.first)
	require.Zero(t, w.lost, w.first)
}

// witness knows, from the commits alone, who holds what.
type witness struct {
	t  *testing.T
	mu sync.Mutex

	live       map[string]map[int]store.Slot // by proxy
	allowed    map[string][]allowance        // by proxy, by time
	narrowed   map[string]time.Time          // proxies whose slots may be counted once everybody knows that they were closed
	overcommit int
	lost       int
	takeovers  int
	first      string // the first fault, in words
	writes     []memory.SlotWrite
}

// allowance is how many leases a proxy allows from some moment on.
type allowance struct {
	from time.Time
	most int
}

func newWitness(t *testing.T) *witness {
	return &witness{t: t, live: map[string]map[int]store.Slot{}, allowed: map[string][]allowance{}, narrowed: map[string]time.Time{}}
}

// mostAllowed is the most that a proxy allowed at any moment since then.
func (w *witness) mostAllowed(proxy string, since time.Time) int {
	most := 0
	for i, a := range w.allowed[proxy] {
		if ended := i+1 < len(w.allowed[proxy]) && !w.allowed[proxy][i+1].from.After(since); !ended {
			most = max(most, a.most)
		}
	}
	return most
}

// commit checks one write. Old and nil, nil and new, or both.
func (w *witness) commit(at time.Time, old, slot *store.Slot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old != nil && slot != nil && old.LeaseID != slot.LeaseID {
		w.takeovers++
		if at.Before(old.ExpireTime.Add(-raceSkew)) {
			w.fault(&w.overcommit, "%s was taken over %s before it expired", old.LeaseID, old.ExpireTime.Sub(at))
		}
		if slot.Fence <= old.Fence {
			w.fault(&w.lost, "the fence of %s does not grow", slot.LeaseID)
		}
	}
	if slot == nil {
		delete(w.live[old.Proxy], old.N)
		return
	}
	if w.live[slot.Proxy] == nil {
		w.live[slot.Proxy] = map[int]store.Slot{}
	}
	w.live[slot.Proxy][slot.N] = *slot
	n := 0
	for _, s := range w.live[slot.Proxy] {
		if s.ExpireTime.After(at) {
			n++
		}
	}
	if old != nil && old.LeaseID == slot.LeaseID {
		return // leases are never revoked, so those that there are may be renewed
	}
	// A lease may be granted by what the catalog said until reconcile counts slots.
	if most := w.mostAllowed(slot.Proxy, at.Add(-raceSettle)); n > most {
		w.fault(&w.overcommit, "%s has %d live leases of %d", slot.Proxy, n, most)
	}
}

func (w *witness) fault(count *int, format string, args ...any) {
	*count++
	if w.first == "" {
		w.first = fmt.Sprintf(format, args...)
	}
}

// publish writes the catalog as reconcile would: a proxy that is to have fewer leases is closed first,
// and its slots are counted when nobody grants by what was known before.
func (w *witness) publish(s store.Store, now time.Time, rnd *rand.Rand, size int) {
	ctx := context.Background()
	shards, err := s.ReadCatalog(ctx)
	if err != nil {
		return
	}
	sh := store.Shard{}
	if len(shards) > 0 {
		sh = shards[0]
	}
	put := map[string]fleet.Entry{}
	for i := range size {
		name := fmt.Sprintf("p-%02d", i)
		e, known := sh.Entries[name]
		if !known {
			e = ready(5)
		}
		switch rnd.IntN(12) {
		case 0:
			e.Verdict.Healthy = !e.Verdict.Healthy
		case 1:
			e.Gate = fleet.GateDraining
		case 2, 3:
			e.Gate = fleet.GateOpen
		case 4:
			if _, closed := w.narrowed[name]; !closed {
				w.resize(&e, name, now, int32(1+rnd.IntN(6)))
			}
		}
		if at, closed := w.narrowed[name]; closed && !now.Before(at.Add(raceSettle)) {
			if slots, err := s.ProxySlots(ctx, name); err == nil {
				e.Capacity, e.Ceiling = raceCapacity(slots, now, e.MaxLeases)
				delete(w.narrowed, name)
			}
		}
		if !known {
			w.allow(name, now, e.MaxLeases)
		}
		put[name] = e
	}
	_, _ = s.WriteShard(ctx, sh, put, nil)
}

// raceSettle is how long after a proxy was closed its slots are counted.
const raceSettle = 10*time.Second + raceSkew

func (w *witness) resize(e *fleet.Entry, name string, now time.Time, most int32) {
	if most < e.Ceiling {
		w.narrowed[name] = now
		e.Capacity = 0
	} else {
		e.Capacity, e.Ceiling = most, most
	}
	e.MaxLeases = most
	w.allow(name, now, most)
}

func (w *witness) allow(name string, now time.Time, most int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed[name] = append(w.allowed[name], allowance{now, int(most)})
}

// raceCapacity is how many slots may be taken so that with the live ones above them there are no more
// than most, and below which all live ones are.
func raceCapacity(slots []store.Slot, now time.Time, most int32) (capacity, ceiling int32) {
	for _, slot := range slots {
		if slot.ExpireTime.After(now) {
			ceiling = max(ceiling, int32(slot.N)+1)
		}
	}
	for n := most; n > 0; n-- {
		above := int32(0)
		for _, slot := range slots {
			if int32(slot.N) >= n && slot.ExpireTime.After(now) {
				above++
			}
		}
		if n+above <= most {
			return n, max(ceiling, n)
		}
	}
	return 0, ceiling
}

// race lets the crawlers loose.
func (w *witness) race(s store.Store, now func() time.Time, ticks *atomic.Int64, operations int) {
	const size = 12
	rnd := rand.New(rand.NewPCG(1, 1))
	w.publish(s, now(), rnd, size)
	var instances []*Service
	for range raceInstances {
		skew := time.Duration(rnd.Int64N(int64(2*raceSkew))) - raceSkew
		instances = append(instances, New(Deps{Store: s, Secrets: vault{}, Now: func() time.Time { return now().Add(skew / 2) }}))
	}
	var left atomic.Int64
	left.Store(int64(operations))
	// Time leaps between the steps only: a call that is held up is ended by a timer, and those know
	// nothing of these clocks.
	var leap sync.RWMutex
	var wg sync.WaitGroup
	for i := range raceCrawlers {
		wg.Go(func() {
			c := &crawler{w: w, services: instances, rnd: rand.New(rand.NewPCG(7, uint64(i))), ticks: ticks}
			for left.Add(-1) >= 0 {
				leap.RLock()
				c.step()
				leap.RUnlock()
			}
		})
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // the fleet changes all the time, and expired slots are swept now and then
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			w.publish(s, now(), rnd, size)
			w.sweep(s, now)
			leap.Lock()
			ticks.Add(int64(rnd.IntN(2000)))
			leap.Unlock()
		}
	}()
	wg.Wait()
	close(stop)
	<-done
}

func (w *witness) sweep(s store.Store, now func() time.Time) {
	slots, err := s.ExpiredSlots(context.Background(), now().Add(-Skew), 20)
	if err != nil {
		return
	}
	for _, slot := range slots {
		_ = s.DeleteSlot(context.Background(), slot)
	}
}

// crawler is one of many, and not a well-behaved one.
type crawler struct {
	w        *witness
	services []*Service
	rnd      *rand.Rand
	ticks    *atomic.Int64
	held     []Lease
	past     []Lease // given back or left to expire: it may still try things with them
	requests int
}

func (c *crawler) any() *Service { return c.services[c.rnd.IntN(len(c.services))] }

func (c *crawler) step() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.ticks.Add(1)
	switch n := c.rnd.IntN(20); {
	case n < 8 || len(c.held) == 0:
		c.acquire(ctx)
	case n < 10:
		i := c.rnd.IntN(len(c.held))
		l, err := c.any().Renew(ctx, c.held[i].ID, 0)
		c.check(i, l, err)
	case n < 11:
		_ = c.any().Report(ctx, c.held[c.rnd.IntN(len(c.held))].ID, OutcomeOK, "")
	case n < 12: // dies, and forgets a lease
		c.drop(c.rnd.IntN(len(c.held)))
	case n < 14 && len(c.past) > 0: // comes late with a lease that has ended
		l := c.past[c.rnd.IntN(len(c.past))]
		if _, err := c.any().Renew(ctx, l.ID, 0); err == nil {
			c.w.mu.Lock()
			slot, ok := c.w.live[l.Proxy.Name][slotOf(l)]
			if !ok || slot.LeaseID != l.ID {
				c.w.fault(&c.w.lost, "a late renewal of %s met another holder", l.ID)
			}
			c.w.mu.Unlock()
		}
		_ = c.any().Release(ctx, l.ID, OutcomeOK, "")
	default:
		i := c.rnd.IntN(len(c.held))
		l := c.drop(i)
		for range 1 + c.rnd.IntN(2) { // sometimes twice, sometimes by another instance
			_ = c.any().Release(ctx, l.ID, OutcomeOK, "")
		}
	}
}

func slotOf(l Lease) int {
	_, n, _ := ParseID(l.ID)
	return n
}

func (c *crawler) acquire(ctx context.Context) {
	r := Request{TTL: MinTTL + time.Duration(c.rnd.IntN(20))*time.Second, Holder: "h"}
	if c.rnd.IntN(3) == 0 {
		c.requests++
		r.RequestID = fmt.Sprintf("%p-%d", c, c.requests)
	}
	l, err := c.any().Acquire(ctx, r)
	if r.RequestID != "" && c.rnd.IntN(2) == 0 { // the answer was lost: ask again, perhaps elsewhere
		again, err2 := c.any().Acquire(ctx, r)
		if err == nil && err2 == nil && again.ID != l.ID {
			c.w.mu.Lock()
			c.w.fault(&c.w.lost, "a repeated request got %s and %s", l.ID, again.ID)
			c.w.mu.Unlock()
		}
		if err2 == nil {
			l, err = again, nil
		}
	}
	if err == nil {
		c.held = append(c.held, l)
	}
}

// check looks at a renewal: the fence of one holder never changes.
func (c *crawler) check(i int, l Lease, err error) {
	if err != nil {
		c.drop(i)
		return
	}
	if l.FencingToken != c.held[i].FencingToken || l.ID != c.held[i].ID {
		c.w.mu.Lock()
		c.w.fault(&c.w.lost, "the fence of %s changed with a renewal", l.ID)
		c.w.mu.Unlock()
	}
	c.held[i] = l
}

func (c *crawler) drop(i int) Lease {
	l := c.held[i]
	c.held = append(c.held[:i], c.held[i+1:]...)
	if c.past = append(c.past, l); len(c.past) > 20 {
		c.past = c.past[1:]
	}
	return l
}

// history collects what each commit says of itself, for a store without a hook: versions are commit
// times, so they order the writes of one slot.
type history struct {
	store.Store
	w *witness
}

func (h *history) CreateSlot(ctx context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	got, err := h.Store.CreateSlot(ctx, s, req)
	if err == nil {
		h.note(memory.SlotWrite{Time: got.Version, New: &got})
	}
	return got, err
}

func (h *history) ReplaceSlot(ctx context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	got, err := h.Store.ReplaceSlot(ctx, s, req)
	if err == nil {
		old := s
		h.note(memory.SlotWrite{Time: got.Version, Old: &old, New: &got})
	}
	return got, err
}

func (h *history) DeleteSlot(ctx context.Context, s store.Slot) error {
	err := h.Store.DeleteSlot(ctx, s)
	if err == nil {
		h.note(memory.SlotWrite{Time: s.Version, Old: &s})
	}
	return err
}

func (h *history) note(c memory.SlotWrite) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.writes = append(h.w.writes, c)
	if c.New != nil { // for the crawlers' own checks while the race is on
		if h.w.live[c.New.Proxy] == nil {
			h.w.live[c.New.Proxy] = map[int]store.Slot{}
		}
		h.w.live[c.New.Proxy][c.New.N] = *c.New
	}
}

// replay checks what was collected: every version of a slot was taken, renewed or freed from exactly
// once, so that no two holders ever had it at once; and no slot beyond what was allowed was taken.
func (w *witness) replay() {
	from := map[string]bool{} // slot and version that a write was conditional on
	for _, c := range w.writes {
		s := c.New
		if s == nil {
			s = c.Old
		}
		id := store.SlotID(s.Proxy, s.N)
		if most := w.mostAllowed(s.Proxy, time.Time{}); c.New != nil && s.N >= most {
			w.fault(&w.overcommit, "%s is above the %d that were ever allowed", id, most)
		}
		if c.New != nil && c.New.Fence == 0 {
			w.fault(&w.lost, "%s has no fence", id)
		}
		if c.Old == nil {
			continue
		}
		// A renewal that changes nothing keeps the version, so it may be written from twice.
		if c.New != nil && c.New.Version.Equal(s.Version) && c.New.LeaseID == c.Old.LeaseID {
			continue
		}
		key := id + c.Old.Version.String()
		if from[key] {
			w.fault(&w.overcommit, "two writes of %s began from the same version", id)
		}
		from[key] = true
	}
}
