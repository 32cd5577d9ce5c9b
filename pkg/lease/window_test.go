package lease

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// sparse is a fleet in which every tenth proxy is of the pool "x", and all of that is taken but one slot.
func sparse(t *testing.T) (r *rig, gap Lease) {
	t.Helper()
	entries := fleetOf(200, 5)
	for i := range 200 {
		if i%10 == 0 {
			entries[fmt.Sprintf("p-%03d", i)] = ready(5, "pool=x")
		}
	}
	r = newRig(t, entries)
	for range 900 {
		r.mustAcquire(Request{Filter: Filter{Exclude: nil}})
	}
	x := Filter{Labels: map[string]string{"pool": "x"}}
	for {
		l, err := r.acquire(t.Context(), Request{Filter: x})
		if err != nil {
			r.refused(NoCapacity, err)
			break
		}
		gap = l
	}
	require.NoError(t, r.Release(t.Context(), gap.ID, OutcomeOK, ""))
	return r, gap
}

func TestASparseFilterFindsItsLastSlotAndSaysNoCapacityWhenThereIsNone(t *testing.T) {
	t.Parallel()
	r, gap := sparse(t)
	x := Filter{Labels: map[string]string{"pool": "x"}}
	s := newSpy(r.store)
	learning := r.instance(s)
	var found Lease
	for range 30 { // each time it learns more of the twenty proxies
		s.mu.Lock()
		s.calls = map[string]int{}
		s.mu.Unlock()
		l, err := learning.Acquire(t.Context(), Request{TTL: DefaultTTL, Filter: x})
		require.LessOrEqual(t, s.total(), 10)
		if err == nil {
			found = l
			break
		}
		r.refused(NoCapacity, err)
		r.clock.Advance(fullFor)
	}
	require.Equal(t, gap.Proxy.Name, found.Proxy.Name)
	_, err := r.instance(r.store).Acquire(t.Context(), Request{TTL: DefaultTTL, Filter: x})
	r.refused(NoCapacity, err)
	require.Less(t, r.live(), 1000, "though others have room")
}

func TestTwoWindowsCoverSixteenProxiesWithoutLookingTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(16, 5))
	var last Lease
	for range 80 {
		last = r.mustAcquire(Request{})
	}
	require.NoError(t, r.Release(t.Context(), last.ID, OutcomeOK, ""))
	for range 30 {
		fresh := r.instance(r.store)
		l, err := fresh.Acquire(t.Context(), Request{TTL: DefaultTTL})
		require.NoError(t, err)
		require.NoError(t, fresh.Release(t.Context(), l.ID, OutcomeOK, ""))
	}
}

func TestAProxyOfAThousandSlotsIsSearchedInBoundedReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1000))
	for range 995 {
		r.mustAcquire(Request{})
	}
	s := newSpy(r.store)
	fresh := r.instance(s)
	for range 20 {
		l, err := fresh.Acquire(t.Context(), Request{TTL: DefaultTTL})
		if err == nil {
			require.NoError(t, fresh.Release(t.Context(), l.ID, OutcomeOK, ""))
			continue
		}
		require.Contains(t, []Reason{NoCapacity, Contention}, asError(err).Reason)
	}
	require.LessOrEqual(t, s.most, windowLimit)
}

func TestAFilterThatIsFullDoesNotHideTheRoomOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(1), "b": ready(1)})
	r.mustAcquire(Request{Filter: Filter{Exclude: []string{"b"}}})
	_, err := r.acquire(t.Context(), Request{Filter: Filter{Exclude: []string{"b"}}})
	r.refused(NoCapacity, err)
	require.Equal(t, "b", r.mustAcquire(Request{}).Proxy.Name)
}

func TestDifferentFiltersAreNeverTakenForTheSame(t *testing.T) {
	t.Parallel()
	filters := []Filter{
		{}, {Provider: "a"}, {Region: "a"}, {Target: "a"}, {Exclude: []string{"a"}}, {Labels: map[string]string{"a": ""}},
		{Labels: map[string]string{"a": "b=c"}}, {Labels: map[string]string{"a=b": "c"}}, {Labels: map[string]string{"a": "b", "c": "d"}},
		{Labels: map[string]string{"a": `b","c":"d`}}, {Labels: map[string]string{"a": "b\x00c=d"}}, {Exclude: []string{"a", "b"}},
		{Labels: map[string]string{"a": "b"}}, {Labels: map[string]string{`a""b`: ""}}, {Exclude: []string{"a,b"}},
	}
	seen := map[string]int{}
	for i, f := range filters {
		other, met := seen[f.key()]
		require.False(t, met, "%v and %v", f, filters[other])
		seen[f.key()] = i
	}
	require.Equal(t, Filter{Exclude: []string{"a", "b"}}.key(), Filter{Exclude: []string{"b", "a"}}.key())
	v := &view{targets: map[string]bool{"shop.example": true}}
	require.Equal(t, v.key(Filter{}), v.key(Filter{Target: "other.example"}), "who has banned nobody makes no difference")
	require.NotEqual(t, v.key(Filter{}), v.key(Filter{Target: "Shop.example."}))
}

func TestOneProxyWhoseCredentialsAreBrokenStopsNoOther(t *testing.T) {
	t.Parallel()
	broken := ready(5)
	broken.Credentials = &fleet.SecretRef{Name: "nowhere"}
	r := newRig(t, map[string]fleet.Entry{"a": broken, "b": ready(50)})
	for range 50 {
		require.Equal(t, "b", r.mustAcquire(Request{}).Proxy.Name)
	}
}

// slow answers a create late, or not at all until its context ends.
type slow struct {
	*memory.Store
	reads, writes time.Duration
}

func (s *slow) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	time.Sleep(s.reads)
	return s.Store.SlotsFrom(ctx, from, to, limit)
}

func (s *slow) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	time.Sleep(s.reads)
	return s.Store.GetSlot(ctx, proxy, n)
}

func (s *slow) CreateSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	select {
	case <-ctx.Done():
		return slot, ctx.Err()
	case <-time.After(s.writes):
		return s.Store.CreateSlot(ctx, slot, req)
	}
}

// TestNoSlotIsTakenLaterThanReconcileWaits: it counts leases ten seconds after it closed a proxy.
func TestNoSlotIsTakenLaterThanReconcileWaits(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*slow{"writes hang": {writes: time.Hour}, "looks take long": {reads: 3 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s.Store = memory.New(time.Now)
				_, err := s.WriteShard(t.Context(), store.Shard{}, fleetOf(3, 1), nil)
				require.NoError(t, err)
				other := New(Deps{Store: s.Store, Now: time.Now})
				for range 3 {
					_, err := other.Acquire(t.Context(), Request{TTL: time.Hour})
					require.NoError(t, err)
				}
				var latest time.Time
				s.OnSlot(func(w memory.SlotWrite) { latest = w.Time })
				began := time.Now()
				_, err = New(Deps{Store: s, Now: time.Now}).Acquire(t.Context(), Request{TTL: time.Hour})
				require.Equal(t, StoreUnavailable, asError(err).Reason)
				require.Zero(t, latest)
				require.LessOrEqual(t, time.Since(began), writeLimit+abandonTimeout)
			})
		})
	}
}

func TestWhatIsKnownStaysBounded(t *testing.T) {
	t.Parallel()
	k := newKnown()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range maxKnown + 10 {
		k.learn(store.Slot{Proxy: "p", N: i, LeaseID: fmt.Sprint(i), ExpireTime: now.Add(time.Duration(i%2) * time.Hour)})
	}
	k.trim(now.Add(time.Minute))
	require.Equal(t, maxKnown/2, len(k.taken))
	require.True(t, k.at(now).Has("p", firstKey(k)))
	k.trim(now.Add(time.Minute))
	require.Equal(t, maxKnown/2, len(k.taken), "and there is room for a while")
}

func firstKey(k *known) int {
	for at := range k.taken {
		return at.n
	}
	return -1
}
