package lease

import (
	"context"
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Request asks for a lease.
type Request struct {
	RequestID string
	Holder    string
	TTL       time.Duration
	StickyKey string
	Wait      time.Duration
	Filter

	payload string // what a repetition must agree in; empty: all of the above but Wait
}

// The bounds of one acquire. Blind tries come first; then a window of neighbouring slots is read, which
// shows the gaps in it; so a fleet that is nearly full still answers in a bounded number of calls to
// the store: at most 3 tries with a look each, 2 windows with a try, and one count. With a sticky key
// the tries are those of stickyTries. After enoughCalls no new way is begun.
const (
	blindTries  = 3
	windowReads = 2
	enoughCalls = 8
)

// writeLimit is the age of the copy of the catalog up to which a slot may be taken by it. Reconcile
// counts slots no sooner than ten seconds after it closed a proxy: no slot may be taken later than that.
const writeLimit = 9 * time.Second

// Acquire grants one lease, waiting up to r.Wait for a slot to become free.
func (s *Service) Acquire(ctx context.Context, r Request) (Lease, error) {
	if r.Wait <= 0 {
		return s.acquire(ctx, r)
	}
	key := r.key()
	if v, err := s.catalog.get(ctx); err == nil {
		key = v.key(r.Filter)
	}
	return s.queue.wait(ctx, key, r.Wait, s.Rand, func() (Lease, error) { return s.acquire(ctx, r) })
}

func (s *Service) acquire(ctx context.Context, r Request) (Lease, error) {
	if r.RequestID != "" {
		end, err := s.turns.take(ctx, r.requestKey())
		if err != nil {
			return Lease{}, away(err)
		}
		defer end()
	}
	v, err := s.catalog.get(ctx)
	if err != nil {
		return Lease{}, err
	}
	a := &attempt{Service: s, ctx: ctx, r: r, view: v}
	pool, why := v.eligible(r.Filter, s.Now())
	if why != nil {
		return a.replayOr(why)
	}
	a.pool = pool
	return a.run()
}

// attempt is one acquire under way.
type attempt struct {
	*Service
	ctx  context.Context
	r    Request
	view *view
	pool *Pool

	calls    int  // to the store, about slots
	conflict bool // somebody had a slot that was tried
	outrun   bool // somebody took a slot that the store had just shown to be free
	next     int  // candidate that the next window begins with

	broken map[*Candidate]error // whose credentials cannot be had
}

func (a *attempt) run() (Lease, error) {
	tries := a.blind
	if a.r.StickyKey != "" {
		tries = a.sticky
	}
	if l, done, err := tries(); done {
		return l, err
	}
	if why := a.full.get(a.view.key(a.r.Filter), a.Now()); why != nil && !a.conflict {
		return a.replayOr(why)
	}
	// With a sticky key too: the key's own order has been tried, now any gap will do.
	if l, done, err := a.windows(); done {
		return l, err
	}
	return a.replayOr(a.refusal())
}

// blind tries slots without a look at the store.
func (a *attempt) blind() (l Lease, done bool, err error) {
	for range blindTries {
		p, ok := a.guess()
		if !ok {
			break
		}
		if l, done, err = a.try(p); done {
			return l, true, err
		}
	}
	return Lease{}, false, nil
}

// guess returns a slot that is not known to be taken. Where such slots are hard to find, one that was
// freed here a moment ago comes first.
func (a *attempt) guess() (Place, bool) {
	taken := a.known.at(a.Now())
	if p, ok := draw(a.pool, taken, a.Rand, nil, easyDraws); ok {
		return p, true
	}
	if p, ok := a.freed(); ok {
		return p, true
	}
	if a.full.get(a.view.key(a.r.Filter), a.Now()) != nil {
		return Place{}, false
	}
	for _, p := range Pick(a.pool, "", taken, a.Rand, 1) {
		return p, true
	}
	return Place{}, false
}

// freed returns a slot that was freed here and that the request may have.
func (a *attempt) freed() (Place, bool) {
	now := a.Now()
	p, ok := a.known.popFreed(func(proxy string, n int) bool {
		c := a.view.byName[proxy]
		return c != nil && n < int(c.Entry.Capacity) && a.r.allows(c, now)
	})
	return Place{Candidate: a.view.byName[p.proxy], N: p.n}, ok
}

// try takes one slot. done is false when it is not to be had and another place is worth a try.
func (a *attempt) try(p Place) (l Lease, done bool, err error) {
	left := writeLimit - a.Now().Sub(a.view.at)
	if left < writeLimit-stale {
		return Lease{}, true, away(errors.New("the store was so slow that what is known of the proxies is out of date"))
	}
	creds, err := a.credentials(a.ctx, p.Candidate.Entry.Credentials)
	if err != nil {
		if a.broken == nil {
			a.broken = map[*Candidate]error{}
		}
		a.broken[p.Candidate] = err
		return Lease{}, false, nil // others' may be well
	}
	if !a.known.reserve(p.Candidate.Name, p.N, a.Now()) {
		return Lease{}, false, nil // another request of this instance is trying it
	}
	slot := a.slot(p)
	ctx, cancel := context.WithTimeout(a.ctx, left)
	defer cancel()
	a.calls++
	got, err := a.Store.CreateSlot(ctx, slot, a.request(slot))
	if err == nil {
		return a.granted(p, got, creds), true, nil
	}
	a.known.forget(p.Candidate.Name, p.N)
	if !errors.Is(err, store.ErrExists) {
		a.abandon(slot)
		return Lease{}, true, away(err)
	}
	return a.occupied(ctx, p, slot, creds)
}

// slot is the document that takes place p.
func (a *attempt) slot(p Place) store.Slot {
	now := a.Now()
	return store.Slot{
		Proxy: p.Candidate.Name, N: p.N, LeaseID: leaseID(p.Candidate.Name, p.N, a.ID()), Incarnation: p.Candidate.Entry.Incarnation,
		Holder: a.r.Holder, RequestID: a.r.RequestID, Target: a.r.Target, Rebound: p.Rebound, AcquireTime: now, ExpireTime: now.Add(a.r.TTL),
	}
}

func (a *attempt) granted(p Place, got store.Slot, creds *credentials) Lease {
	a.known.learn(got)
	a.known.trim(a.Now())
	return answer(got, p.Candidate.Entry, creds)
}

// refusal tells a fleet without room from one where others were faster. Where only a part of the fleet
// matches, and that is not known slot by slot, what the windows showed has to do; else one count of live
// slots decides. That there is no room is remembered for a second.
func (a *attempt) refusal() *Error {
	for _, err := range a.broken {
		if !a.conflict {
			return asError(err)
		}
	}
	if a.outrun {
		return refuse(Contention, "there is room, but others were faster; try again")
	}
	if len(a.pool.Candidates) == a.view.readyProxies && !a.knownFull() {
		live, err := a.live(a.ctx)
		if err != nil {
			return away(err)
		}
		if live < a.view.ready {
			return refuse(Contention, "there is room, but others were faster; try again")
		}
	}
	why := refuse(NoCapacity, "all %d slots of the %d ready proxies that match are taken", a.pool.Slots(), len(a.pool.Candidates))
	a.full.set(a.view.key(a.r.Filter), why, a.Now())
	return why
}

// knownFull reports whether every slot that matches is known to be taken.
func (a *attempt) knownFull() bool {
	taken := a.known.at(a.Now())
	for k := range a.pool.Slots() {
		if p := a.pool.place(k); !taken.Has(p.Candidate.Name, p.N) {
			return false
		}
	}
	return true
}

// entry returns what the catalog says of a proxy, the zero Entry when it is not in it.
func (v *view) entry(name string) fleet.Entry {
	if c := v.byName[name]; c != nil {
		return c.Entry
	}
	return fleet.Entry{}
}
