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
	ctx      context.Context
	r        Request
	view     *view
	pool     *Pool
	conflict bool // somebody else was faster
}

func (a *attempt) run() (Lease, error) {
	for _, p := range a.first() {
		l, done, err := a.try(p)
		if done {
			return l, err
		}
	}
	if why := a.full.get(a.r.key(), a.Now()); why != nil && !a.conflict {
		return a.replayOr(why)
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
	return a.replayOr(a.refusal())
}

// first are the places to try blind. Where free slots are hard to find, one that was freed here a
// moment ago comes first.
func (a *attempt) first() []Place {
	places, crowded := Pick(a.pool, a.r.StickyKey, a.known.at(a.Now()), a.Rand, blindTries)
	if a.r.StickyKey != "" || !crowded && len(places) > 0 {
		return places
	}
	p, ok := a.known.popFreed(func(proxy string, n int) bool {
		c := a.pool.byName[proxy]
		return c != nil && n < int(c.Entry.Capacity)
	})
	if !ok {
		return places
	}
	places = append([]Place{{Candidate: a.pool.byName[p.proxy], N: p.n}}, places...)
	return places[:min(len(places), blindTries)]
}

// try takes one slot. done is false when somebody else has it and another place is worth a try.
func (a *attempt) try(p Place) (l Lease, done bool, err error) {
	creds, err := a.credentials(a.ctx, p.Candidate.Entry.Credentials)
	if err != nil {
		return Lease{}, true, err
	}
	if !a.known.reserve(p.Candidate.Name, p.N, a.Now()) {
		return Lease{}, false, nil // another request of this instance is trying it
	}
	slot := a.slot(p)
	got, err := a.Store.CreateSlot(a.ctx, slot, a.request(slot))
	if err == nil {
		return a.granted(p, got, creds), true, nil
	}
	a.known.forget(p.Candidate.Name, p.N)
	if !errors.Is(err, store.ErrExists) {
		a.abandon(slot)
		return Lease{}, true, away(err)
	}
	a.conflict = true
	return a.occupied(p, slot, creds)
}

// abandonTimeout bounds the look after a commit whose outcome is not known.
const abandonTimeout = 2 * time.Second

// abandon frees a slot whose commit may have been made though its answer is an outage: or else it
// would be taken by nobody until it expires. With a request id it stays: the repeated call finds it.
func (a *attempt) abandon(slot store.Slot) {
	if a.r.RequestID != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), abandonTimeout)
	defer cancel()
	have, err := a.Store.GetSlot(ctx, slot.Proxy, slot.N)
	if err == nil && have.LeaseID == slot.LeaseID {
		_ = a.Store.DeleteSlot(ctx, have)
	}
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
		return Lease{}, false, nil // freed meanwhile
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
	all := a.pool.Candidates
	from := min(int(a.Rand()*float64(len(all))), len(all)-1)
	var near []*Candidate
	room := 0
	for i := from; i < len(all) && len(near) < 8 && room < windowSlots; i++ {
		near = append(near, all[i])
		room += int(max(all[i].Entry.Ceiling, all[i].Entry.Capacity))
	}
	// The ids of the last one's slots end before those of a name with a digit more.
	slots, err := a.Store.SlotsFrom(a.ctx, near[0].Name, near[len(near)-1].Name+"0", 2*windowSlots)
	if err != nil {
		return Place{}, false, err
	}
	taken := map[place]bool{}
	now := a.Now()
	for _, slot := range slots {
		if !takeable(slot, now) {
			a.known.learn(slot)
			taken[place{slot.Proxy, slot.N}] = true
		}
	}
	var gaps []Place
	for _, c := range near {
		for n := range int(c.Entry.Capacity) {
			if !taken[place{c.Name, n}] {
				gaps = append(gaps, Place{Candidate: c, N: n, Rebound: a.r.StickyKey != ""})
			}
		}
	}
	if len(gaps) == 0 {
		return Place{}, false, nil
	}
	gap := gaps[min(int(a.Rand()*float64(len(gaps))), len(gaps)-1)]
	a.known.stale(gap.Candidate.Name, gap.N)
	return gap, true, nil
}

// refusal tells a fleet without room from one where others were faster, by one count of live slots. That
// there is no room is remembered for a second.
func (a *attempt) refusal() *Error {
	live, err := a.live(a.ctx, a.view.ready)
	if err != nil {
		return away(err)
	}
	if live < a.view.ready && !a.knownFull() {
		return refuse(Contention, "there is room, but others were faster; try again")
	}
	why := refuse(NoCapacity, "all %d slots of the %d ready proxies that match are taken", a.pool.Slots(), len(a.pool.Candidates))
	a.full.set(a.r.key(), why, a.Now())
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
