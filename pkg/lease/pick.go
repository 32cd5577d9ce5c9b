package lease

import (
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
}

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
	// Count returns how many slots of the proxy are thought to be taken.
	Count(proxy string) int
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

// Eligible returns the proxies that may be leased under f, in the order of all, and, when there is
// none, why.
func Eligible(all []Candidate, f Filter, now time.Time) ([]*Candidate, *Error) {
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
		return out, nil
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
func Pick(eligible []*Candidate, stickyKey string, taken Taken, rand func() float64, most int) []Place {
	if stickyKey != "" {
		return pickSticky(eligible, stickyKey, taken, most)
	}
	return pickRandom(eligible, taken, rand, most)
}

func pickRandom(eligible []*Candidate, taken Taken, rand func() float64, most int) []Place {
	free := make([]int, len(eligible))
	total := 0
	for i, c := range eligible {
		free[i] = max(0, int(c.Entry.Capacity)-taken.Count(c.Name))
		total += free[i]
	}
	chosen := map[string]map[int]bool{}
	var out []Place
	for len(out) < most && total > 0 {
		at := min(int(rand()*float64(total)), total-1)
		for i, c := range eligible {
			if at >= free[i] {
				at -= free[i]
				continue
			}
			n := freeSlot(c, at, taken, chosen[c.Name])
			if n < 0 { // the count was wrong: there is none
				total -= free[i]
				free[i] = 0
				break
			}
			if chosen[c.Name] == nil {
				chosen[c.Name] = map[int]bool{}
			}
			chosen[c.Name][n] = true
			out = append(out, Place{Candidate: c, N: n})
			free[i]--
			total--
			break
		}
	}
	return out
}

// freeSlot returns the k-th slot of c that is neither taken nor chosen, or the last such one, or -1.
func freeSlot(c *Candidate, k int, taken Taken, chosen map[int]bool) int {
	found := -1
	for n := range int(c.Entry.Capacity) {
		if chosen[n] || taken.Has(c.Name, n) {
			continue
		}
		found = n
		if k == 0 {
			break
		}
		k--
	}
	return found
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

// rank orders proxies by rendezvous hash (highest random weight): each proxy draws a number for the
// key, and the order is that of the numbers.
func rank(eligible []*Candidate, key string) []*Candidate {
	weights := make(map[*Candidate]uint64, len(eligible))
	for _, c := range eligible {
		sum := sha256.Sum256([]byte(key + "\x00" + c.Name))
		weights[c] = binary.BigEndian.Uint64(sum[:8])
	}
	ranked := slices.Clone(eligible)
	slices.SortFunc(ranked, func(a, b *Candidate) int {
		switch {
		case weights[a] > weights[b]:
			return -1
		case weights[a] < weights[b]:
			return 1
		}
		return 0
	})
	return ranked
}
