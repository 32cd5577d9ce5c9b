package lease

// stickyTries is how many of a key's proxies are looked at before any gap will do.
const stickyTries = 2

// sticky tries the proxies in the key's order: the key stays with its proxy as long as that has a slot.
func (a *attempt) sticky() (l Lease, done bool, err error) {
	ranked := rank(a.pool.Candidates, a.r.StickyKey)
	for i, c := range ranked[:min(stickyTries, len(ranked))] {
		if n, ok := freeSlot(c, a.known.at(a.Now())); ok {
			if l, done, err = a.try(Place{Candidate: c, N: n, Rebound: i > 0}); done {
				return l, true, err
			}
		}
		n, ok, err := a.look(c)
		if err != nil {
			return Lease{}, true, err
		}
		if !ok {
			continue
		}
		if l, done, err = a.try(Place{Candidate: c, N: n, Rebound: i > 0}); done {
			return l, true, err
		}
	}
	return Lease{}, false, nil
}

// look asks the store for the slots of one proxy, all of which are thought to be taken, and returns one
// that is free after all.
func (a *attempt) look(c *Candidate) (n int, ok bool, err error) {
	if c.Entry.Capacity <= 0 {
		return 0, false, nil
	}
	a.calls++
	slots, err := a.Store.ProxySlots(a.ctx, c.Name)
	if err != nil {
		return 0, false, away(err)
	}
	taken := a.learn(slots)
	for n := range int(c.Entry.Capacity) {
		if !taken[place{c.Name, n}] {
			a.known.stale(c.Name, n)
			return n, true, nil
		}
	}
	return 0, false, nil
}
