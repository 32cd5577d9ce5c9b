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
}

// The bounds of one acquire. Blind tries come first; then a window of neighbouring slots is read, which
// shows the gaps in it; so a fleet that is nearly full still answers in a bounded number of calls to
// the store: at most 3 tries with a look each, 2 windows with a try each, and one count.
const (
	blindTries  = 3
	windowReads = 2
	windowSlots = 60
	// crowded is the share of known taken slots above which a slot that was freed here is tried first.
	crowded = 0.9
)

// Acquire grants one lease, waiting up to r.Wait for a slot to become free.
func (s *Service) Acquire(ctx context.Context, r Request) (Lease, error) {
	l, err := s.queue.wait(ctx, r, s.Now, func() (Lease, error) { return s.acquire(ctx, r) })
	return l, err
}

func (s *Service) acquire(ctx context.Context, r Request) (Lease, error) {
	v, err := s.catalog.get(ctx)
	if err != nil {
		return Lease{}, err
	}
	a := &attempt{Service: s, ctx: ctx, r: r, view: v}
	eligible, why := v.eligible(r.Filter, s.Now())
	if why != nil {
		return a.replayOr(why)
	}
	a.eligible = eligible
	return a.run()
}

// attempt is one acquire under way.
type attempt struct {
	*Service
	ctx      context.Context
	r        Request
	view     *view
	eligible []*Candidate
	calls    int // to the store, on slots
	conflict bool
}

func (a *attempt) run() (Lease, error) {
	for _, p := range a.first() {
		l, done, err := a.try(p)
		if done {
			return l, err
		}
	}
	// With a sticky key too: the key's own order has been tried, now any gap will do.
	for range windowReads {
		p, ok, err := a.window()
		if err != nil {
			return Lease{}, away(err)
		}
		if !ok {
			continue
		}
		if l, done, err := a.try(p); done {
			return l, err
		}
	}
	return a.replayOr(a.full())
}

// first are the places to try blind.
func (a *attempt) first() []Place {
	now := a.Now()
	taken := a.known.at(now)
	places := Pick(a.eligible, a.r.StickyKey, taken, a.Rand, blindTries)
	if a.r.StickyKey != "" || !a.isCrowded(taken) {
		return places
	}
	byName := map[string]*Candidate{}
	for _, c := range a.eligible {
		byName[c.Name] = c
	}
	p, ok := a.known.popFreed(func(proxy string, n int) bool {
		c := byName[proxy]
		return c != nil && n < int(c.Entry.Capacity)
	})
	if !ok {
		return places
	}
	places = append([]Place{{Candidate: byName[p.proxy], N: p.n}}, places...)
	return places[:min(len(places), blindTries)]
}

func (a *attempt) isCrowded(taken Taken) bool {
	known, capacity := 0, 0
	for _, c := range a.eligible {
		known += taken.Count(c.Name)
		capacity += int(c.Entry.Capacity)
	}
	return float64(known) >= crowded*float64(capacity)
}

// try takes one slot. done is false when somebody else has it and another place is worth a try.
func (a *attempt) try(p Place) (l Lease, done bool, err error) {
	creds, err := a.credentials(a.ctx, p.Candidate.Entry.Credentials)
	if err != nil {
		return Lease{}, true, err
	}
	slot := a.slot(p)
	got, err := a.Store.CreateSlot(a.ctx, slot, a.request(slot))
	if err == nil {
		return a.granted(p, got, creds), true, nil
	}
	if !errors.Is(err, store.ErrExists) {
		return Lease{}, true, away(err)
	}
	a.conflict = true
	return a.occupied(p, slot, creds)
}

// slot is the document that takes place p.
func (a *attempt) slot(p Place) store.Slot {
	now := a.Now()
	return store.Slot{
		Proxy: p.Candidate.Name, N: p.N, LeaseID: leaseID(p.Candidate.Name, p.N, a.ID()), Incarnation: p.Candidate.Entry.Incarnation,
		Holder: a.r.Holder, RequestID: a.r.RequestID, Target: a.r.Target, Rebound: p.Rebound, AcquireTime: now, ExpireTime: now.Add(a.r.TTL),
	}
}

// occupied looks at a slot that could not be created: it may be ours by a repeated commit, the
// request may have been answered before, the holder may be gone long enough, or it is taken.
func (a *attempt) occupied(p Place, want store.Slot, creds *credentials) (Lease, bool, error) {
	if l, replayed, err := a.replay(); replayed || err != nil {
		return l, true, err
	}
	have, err := a.Store.GetSlot(a.ctx, want.Proxy, want.N)
	if errors.Is(err, store.ErrNotFound) {
		a.known.forget(want.Proxy, want.N) // freed meanwhile
		return Lease{}, false, nil
	}
	if err != nil {
		return Lease{}, true, away(err)
	}
	if have.LeaseID == want.LeaseID {
		return a.granted(p, have, creds), true, nil
	}
	if !takeable(have, a.Now()) {
		a.known.learn(have)
		return Lease{}, false, nil
	}
	return a.takeOver(p, have, want, creds)
}

// takeOver replaces a holder who let the lease expire.
func (a *attempt) takeOver(p Place, have, want store.Slot, creds *credentials) (Lease, bool, error) {
	want.Version, want.Fence = have.Version, 0
	got, err := a.Store.ReplaceSlot(a.ctx, want, a.request(want))
	switch {
	case err == nil:
		return a.granted(p, got, creds), true, nil
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrExists):
		// Our own commit may have been repeated by the client.
		now, getErr := a.Store.GetSlot(a.ctx, want.Proxy, want.N)
		if getErr == nil && now.LeaseID == want.LeaseID {
			return a.granted(p, now, creds), true, nil
		}
		if getErr == nil {
			a.known.learn(now)
		}
		return Lease{}, false, nil
	}
	return Lease{}, true, away(err)
}

func (a *attempt) granted(p Place, got store.Slot, creds *credentials) Lease {
	a.known.learn(got)
	a.known.trim(a.Now())
	return answer(got, p.Candidate.Entry, creds)
}

// window reads the slots of some neighbouring proxies from a random start and returns a place that is
// free, or whose holder is long gone.
func (a *attempt) window() (Place, bool, error) {
	from := min(int(a.Rand()*float64(len(a.eligible))), len(a.eligible)-1)
	var names []*Candidate
	room := 0
	for i := from; i < len(a.eligible) && len(names) < 8 && room < windowSlots; i++ {
		names = append(names, a.eligible[i])
		room += int(max(a.eligible[i].Entry.Ceiling, a.eligible[i].Entry.Capacity))
	}
	last := names[len(names)-1]
	// One name more than the last would need its successor; the prefix query up to it does.
	slots, err := a.Store.SlotsFrom(a.ctx, names[0].Name, last.Name+"0", windowSlots*4)
	if err != nil {
		return Place{}, false, err
	}
	taken := map[string]map[int]bool{}
	now := a.Now()
	for _, slot := range slots {
		if takeable(slot, now) {
			continue
		}
		a.known.learn(slot)
		if taken[slot.Proxy] == nil {
			taken[slot.Proxy] = map[int]bool{}
		}
		taken[slot.Proxy][slot.N] = true
	}
	var gaps []Place
	for _, c := range names {
		for n := range int(c.Entry.Capacity) {
			if !taken[c.Name][n] {
				a.known.forget(c.Name, n)
				gaps = append(gaps, Place{Candidate: c, N: n, Rebound: a.r.StickyKey != ""})
			}
		}
	}
	if len(gaps) == 0 {
		return Place{}, false, nil
	}
	return gaps[min(int(a.Rand()*float64(len(gaps))), len(gaps)-1)], true, nil
}

// full tells a fleet without room from one where others were faster, by one count that is kept for a
// second.
func (a *attempt) full() *Error {
	capacity := 0
	for i := range a.view.all {
		if e := a.view.all[i].Entry; e.Ready() {
			capacity += int(e.Capacity)
		}
	}
	live, err := a.live(a.ctx)
	if err != nil {
		return away(err)
	}
	wanted := 0
	for _, c := range a.eligible {
		wanted += int(c.Entry.Capacity)
	}
	if !a.conflict && wanted == 0 || live >= capacity || a.knownFull() {
		return refuse(NoCapacity, "all %d slots of the %d ready proxies that match are taken", wanted, len(a.eligible))
	}
	return refuse(Contention, "there is room, but others were faster; try again")
}

// knownFull reports whether every slot that matches is known to be taken.
func (a *attempt) knownFull() bool {
	taken := a.known.at(a.Now())
	for _, c := range a.eligible {
		if taken.Count(c.Name) < int(c.Entry.Capacity) {
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
