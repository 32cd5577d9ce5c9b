package lease

import "crawl.example.com/proxyfleet/pkg/store"

// A window is the slots of up to windowProxies neighbours, of windowSlots slots together where that is
// possible. windowLimit bounds what is read: documents of expired leases come on top.
const (
	windowProxies = 8
	windowSlots   = 60
	windowLimit   = 200
)

// windows reads the slots of some neighbouring proxies, in a large fleet from a random start on, and tries
// a gap in them.
func (a *attempt) windows() (Lease, bool, error) {
	all := a.pool.Candidates
	if len(all) > windowReads*windowProxies { // else they are all looked at
		a.next = min(int(a.Rand()*float64(len(all))), len(all)-1)
	}
	for range windowReads {
		if a.calls >= enoughCalls {
			break
		}
		p, ok, err := a.window()
		if err != nil {
			return Lease{}, true, away(err)
		}
		if !ok {
			continue
		}
		broken := len(a.broken)
		if l, done, err := a.try(p); done {
			return l, true, err
		}
		a.outrun = a.outrun || len(a.broken) == broken
	}
	return Lease{}, false, nil
}

// window returns a place that is free, or whose holder is long gone. What lies between the candidates in
// the order of the catalog is read, too, so that sparse candidates make a small window.
func (a *attempt) window() (Place, bool, error) {
	all := a.pool.Candidates
	first := all[a.next]
	near := []*Candidate{first}
	for _, c := range all[a.next+1:] {
		if len(near) == windowProxies || c.before+c.size()-first.before > windowSlots {
			break
		}
		near = append(near, c)
	}
	a.next = (a.next + len(near)) % len(all)
	// The ids of the last one's slots end before those of a name with a digit more.
	a.calls++
	slots, err := a.Store.SlotsFrom(a.ctx, first.Name, near[len(near)-1].Name+"0", windowLimit)
	if err != nil {
		return Place{}, false, err
	}
	seen := func(string) bool { return true }
	if len(slots) == windowLimit {
		last := store.SlotID(slots[windowLimit-1].Proxy, slots[windowLimit-1].N)
		seen = func(id string) bool { return id <= last }
	}
	gap, ok := a.gap(near, slots, seen)
	return gap, ok, nil
}

// gap learns what slots of the given proxies are taken and returns one that is not, at random.
func (a *attempt) gap(near []*Candidate, slots []store.Slot, seen func(id string) bool) (Place, bool) {
	taken := a.learn(slots)
	var gaps []Place
	for _, c := range near {
		if a.broken[c] != nil {
			continue
		}
		for n := range int(c.Entry.Capacity) {
			if !taken[place{c.Name, n}] && seen(store.SlotID(c.Name, n)) {
				gaps = append(gaps, Place{Candidate: c, N: n, Rebound: a.r.StickyKey != ""})
			}
		}
	}
	if len(gaps) == 0 {
		return Place{}, false
	}
	gap := gaps[min(int(a.Rand()*float64(len(gaps))), len(gaps)-1)]
	a.known.stale(gap.Candidate.Name, gap.N)
	return gap, true
}

// learn remembers slots that the store has shown, and returns which of them are taken.
func (a *attempt) learn(slots []store.Slot) map[place]bool {
	taken := make(map[place]bool, len(slots))
	now := a.Now()
	for _, slot := range slots {
		if !takeable(slot, now) {
			a.known.learn(slot)
			taken[place{slot.Proxy, slot.N}] = true
		}
	}
	return taken
}
