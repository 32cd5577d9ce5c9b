package lease

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// takenSet is what an instance might know.
type takenSet map[string]map[int]bool

func (t takenSet) Has(proxy string, n int) bool { return t[proxy][n] }

func candidates(capacities ...int32) []*Candidate {
	var out []*Candidate
	for i, c := range capacities {
		out = append(out, &Candidate{Name: fmt.Sprintf("p-%d", i), Entry: ready(c)})
	}
	return out
}

// chiSquare999 is the 99.9th percentile of the chi-square distribution with 30 degrees of freedom.
const chiSquare999 = 59.7

func TestRandomChoiceIsUniformOverFreeCapacity(t *testing.T) {
	t.Parallel()
	all := candidates(10, 1, 20, 5)
	taken := takenSet{"p-0": {0: true, 3: true, 9: true}, "p-3": {1: true, 2: true}} // leaves 31 places
	rand := seeded(7)
	const draws = 31000
	counts := map[string]int{}
	for range draws {
		p := Pick(NewPool(all), "", taken, rand, 1)[0]
		require.False(t, taken.Has(p.Candidate.Name, p.N))
		require.Less(t, p.N, int(p.Candidate.Entry.Capacity))
		counts[store.SlotID(p.Candidate.Name, p.N)]++
	}
	require.Len(t, counts, 31, "every free place is drawn")
	expected, chi := float64(draws)/31, 0.0
	for _, n := range counts {
		chi += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	require.Less(t, chi, chiSquare999)
}

func TestPickNeverOffersAPlaceTwiceOrOneThatIsTaken(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var caps []int32
		for range 1 + rnd.IntN(6) {
			caps = append(caps, int32(rnd.IntN(5)))
		}
		all, taken, free := candidates(caps...), takenSet{}, 0
		for _, c := range all {
			taken[c.Name] = map[int]bool{}
			for n := range int(c.Entry.Capacity) {
				if rnd.IntN(2) == 0 {
					taken[c.Name][n] = true
				} else {
					free++
				}
			}
		}
		for _, key := range []string{"", "sticky"} {
			most := 1 + rnd.IntN(30)
			places := Pick(NewPool(all), key, taken, rnd.Float64, most)
			require.Len(t, places, min(most, free))
			seen := map[string]bool{}
			for _, p := range places {
				id := store.SlotID(p.Candidate.Name, p.N)
				require.False(t, seen[id])
				seen[id] = true
				require.False(t, taken.Has(p.Candidate.Name, p.N))
				require.Less(t, p.N, int(p.Candidate.Entry.Capacity))
			}
		}
	}
}

func TestPickOfAFleetThatIsKnownToBeFullIsEmpty(t *testing.T) {
	t.Parallel()
	require.Empty(t, Pick(NewPool(candidates(2, 5)), "", all{}, seeded(1), 6))
	require.Empty(t, Pick(NewPool(candidates(0, 0)), "", takenSet{}, seeded(1), 6))
}

// all slots are taken.
type all struct{}

func (all) Has(string, int) bool { return true }

func TestEligibleSatisfiesTheFilter(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	now := newClock().Now()
	for range 300 {
		var all []Candidate
		for i := range rnd.IntN(20) {
			e := ready(1, fmt.Sprintf("pool=%d", rnd.IntN(3)))
			e.Provider, e.Region = fmt.Sprint(rnd.IntN(2)), fmt.Sprint(rnd.IntN(2))
			e.Verdict.Healthy = rnd.IntN(3) > 0
			if rnd.IntN(4) == 0 {
				e.Gate = fleet.GatePaused
			}
			if rnd.IntN(4) == 0 {
				e.Quarantine = map[string]time.Time{"h": now.Add(time.Duration(rnd.IntN(3)-1) * time.Minute)}
			}
			all = append(all, Candidate{Name: fmt.Sprint("p", i), Entry: e})
		}
		f := Filter{Labels: map[string]string{"pool": fmt.Sprint(rnd.IntN(3))}, Provider: fmt.Sprint(rnd.IntN(2)), Exclude: []string{"p1"}, Target: "h"}
		got, why := Eligible(all, f, now)
		require.Equal(t, got == nil, why != nil)
		in := map[string]bool{}
		if got != nil {
			for _, c := range got.Candidates {
				in[c.Name] = true
			}
		}
		for _, c := range all {
			want := c.Name != "p1" && c.Entry.Labels["pool"] == f.Labels["pool"] && c.Entry.Provider == f.Provider &&
				c.Entry.Verdict.Healthy && c.Entry.Gate == "" && !c.Entry.Quarantine["h"].After(now)
			require.Equal(t, want, in[c.Name])
		}
	}
}

func TestRankMovesFewKeysWhenAProxyComes(t *testing.T) {
	t.Parallel()
	before, after := candidates(1, 1, 1, 1, 1, 1, 1, 1, 1), candidates(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	moved := 0
	for i := range 2000 {
		key := fmt.Sprint(i)
		a, b := rank(before, key)[0].Name, rank(after, key)[0].Name
		if a != b {
			require.Equal(t, "p-9", b, "a key moves to the new proxy or not at all")
			moved++
		}
	}
	require.InDelta(t, 200, moved, 60)
}
