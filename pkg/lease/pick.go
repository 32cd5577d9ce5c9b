package lease

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// Candidate is a proxy as the catalog has it.
type Candidate struct {
	Name  string
	Shard int
	Entry fleet.Entry

	before int // slots of all proxies before it in the order of the catalog
}

// size is how many slots of it there may be, taken or not.
func (c *Candidate) size() int { return int(max(c.Entry.Ceiling, c.Entry.Capacity, 0)) }

// Filter says which proxies a request may get.
type Filter struct {
	Labels   map[string]string
	Provider string
	Region   string
	Exclude  []string
	Target   string // host that must not have banned the proxy
}

// Place is a slot that may be tried.
type Place struct {
	Candidate *Candidate
	N         int
	Rebound   bool // another proxy than the sticky key's first
}

// Taken tells what an instance knows about slots: it may be wrong in both directions.
type Taken interface {
	// Has reports whether the slot is thought to be taken.
	Has(proxy string, n int) bool
}

// Matches reports whether e may serve the filter at all, healthy or not.
func (f Filter) Matches(name string, e fleet.Entry) bool {
	if f.Provider != "" && e.Provider != f.Provider || f.Region != "" && e.Region != f.Region {
		return false
	}
	for k, v := range f.Labels {
		if have, ok := e.Labels[k]; !ok || have != v {
			return false
		}
	}
	return !slices.Contains(f.Exclude, name)
}

func (f Filter) quarantined(e fleet.Entry, now time.Time) bool {
	return f.Target != "" && e.Quarantine[fleet.QuarantineKey(f.Target)].After(now)
}

// allows reports whether c may be leased under f now.
func (f Filter) allows(c *Candidate, now time.Time) bool {
	return f.Matches(c.Name, c.Entry) && c.Entry.Ready() && !f.quarantined(c.Entry, now)
}

// Pool are the proxies that may be leased under one filter, with what choosing among them needs. It is
// made once per copy of the catalog and filter, and never changed.
type Pool struct {
	Candidates []*Candidate // in the order of the catalog
	upTo       []int        // upTo[i] is the number of slots of the candidates before i, and of all at the end
}

// NewPool returns the pool of the given candidates.
func NewPool(candidates []*Candidate) *Pool {
	p := &Pool{Candidates: candidates, upTo: make([]int, 1, len(candidates)+1)}
	for i, c := range candidates {
		p.upTo = append(p.upTo, p.upTo[i]+max(0, int(c.Entry.Capacity)))
	}
	return p
}

// Slots is how many slots there are, taken or not.
func (p *Pool) Slots() int { return p.upTo[len(p.upTo)-1] }

// place returns the k-th slot, 0 <= k < Slots.
func (p *Pool) place(k int) Place {
	i, _ := slices.BinarySearch(p.upTo, k+1)
	return Place{Candidate: p.Candidates[i-1], N: k - p.upTo[i-1]}
}

// Eligible returns the proxies that may be leased under f and, when there is none, why.
func Eligible(all []Candidate, f Filter, now time.Time) (*Pool, *Error) {
	var out []*Candidate
	matching, ready := 0, 0
	for i := range all {
		c := &all[i]
		if !f.Matches(c.Name, c.Entry) {
			continue
		}
		matching++
		if !c.Entry.Ready() {
			continue
		}
		ready++
		if !f.quarantined(c.Entry, now) {
			out = append(out, c)
		}
	}
	switch {
	case len(out) > 0:
		return NewPool(out), nil
	case len(all) == 0:
		return nil, refuse(NoProxies, "there are no proxies yet")
	case matching == 0:
		return nil, refuse(FilterEmpty, "none of %d proxies matches the labels, provider and region asked for", len(all))
	case ready == 0:
		return nil, &Error{Reason: NoneHealthy, Message: "no matching proxy is ready at the moment", Metadata: whyNot(all, f)}
	}
	return nil, refuse(Quarantined, "all %d ready proxies have been banned by %s lately", ready, f.Target)
}

// Pick chooses the slots to try, the best first, at most most of them: pure, given what rand draws.
// Without a sticky key the choice is uniform over the slots that are not known to be taken, so that load
// spreads in proportion to free capacity; with one it goes by rendezvous hashing, so that a key stays
// with its proxy while that is eligible, and few keys move when the fleet changes.
func Pick(p *Pool, stickyKey string, taken Taken, rand func() float64, most int) []Place {
	if stickyKey != "" {
		return pickSticky(p.Candidates, stickyKey, taken, most)
	}
	return pickRandom(p, taken, rand, most)
}

// The draws after which free slots count as hard to find, and after which they are searched for one by
// one: with one slot in a hundred free, 256 draws miss them all one time in thirteen.
const (
	easyDraws = 10
	mostDraws = 256
)

// pickRandom draws slots and rejects those that are taken: what is left is uniform over the others, and
// costs a few draws unless nearly all are taken.
func pickRandom(p *Pool, taken Taken, rand func() float64, most int) []Place {
	var out []Place
	for len(out) < most {
		place, ok := draw(p, taken, rand, out, mostDraws)
		if !ok {
			return append(out, freePlaces(p, taken, rand, out, most-len(out))...)
		}
		out = append(out, place)
	}
	return out
}

// draw draws a slot that is neither taken nor chosen, in at most tries draws.
func draw(p *Pool, taken Taken, rand func() float64, chosen []Place, tries int) (Place, bool) {
	total := p.Slots()
	if total == 0 {
		return Place{}, false
	}
	for range tries {
		place := p.place(min(int(rand()*float64(total)), total-1))
		if !taken.Has(place.Candidate.Name, place.N) && !slices.Contains(chosen, place) {
			return place, true
		}
	}
	return Place{}, false
}

// freePlaces draws from a list of all free slots but those that are chosen already.
func freePlaces(p *Pool, taken Taken, rand func() float64, chosen []Place, most int) []Place {
	var free []Place
	for k := range p.Slots() {
		if place := p.place(k); !taken.Has(place.Candidate.Name, place.N) && !slices.Contains(chosen, place) {
			free = append(free, place)
		}
	}
	for i := range min(most, len(free)) {
		j := i + min(int(rand()*float64(len(free)-i)), len(free)-i-1)
		free[i], free[j] = free[j], free[i]
	}
	return free[:min(most, len(free))]
}

func pickSticky(eligible []*Candidate, key string, taken Taken, most int) []Place {
	ranked := rank(eligible, key)
	var out []Place
	for i, c := range ranked {
		for n := range int(c.Entry.Capacity) {
			if len(out) == most {
				return out
			}
			if !taken.Has(c.Name, n) {
				out = append(out, Place{Candidate: c, N: n, Rebound: i > 0})
			}
		}
	}
	return out
}

// freeSlot returns the first slot of c that is not known to be taken.
func freeSlot(c *Candidate, taken Taken) (int, bool) {
	for n := range int(c.Entry.Capacity) {
		if !taken.Has(c.Name, n) {
			return n, true
		}
	}
	return 0, false
}

// rank orders proxies by rendezvous hash (highest random weight): each proxy draws a number for the
// key, and the order is that of the numbers.
func rank(eligible []*Candidate, key string) []*Candidate {
	type weighed struct {
		c      *Candidate
		weight uint64
	}
	weights := make([]weighed, len(eligible))
	for i, c := range eligible {
		sum := sha256.Sum256([]byte(key + "\x00" + c.Name))
		weights[i] = weighed{c, binary.BigEndian.Uint64(sum[:8])}
	}
	slices.SortFunc(weights, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	ranked := make([]*Candidate, len(weights))
	for i, w := range weights {
		ranked[i] = w.c
	}
	return ranked
}
