package lease

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

func fleetOf(n int, capacity int32) map[string]fleet.Entry {
	out := map[string]fleet.Entry{}
	for i := range n {
		out[fmt.Sprintf("p-%03d", i)] = ready(capacity)
	}
	return out
}

func TestALeaseHasAllThatACrawlerNeeds(t *testing.T) {
	t.Parallel()
	e := ready(1, "pool=news")
	e.Credentials = &fleet.SecretRef{Name: "auth", Key: "basic"}
	r := newRig(t, map[string]fleet.Entry{"a": e})
	r.vault["auth/basic"] = `crawler:p:@/?#%é "`
	l := r.mustAcquire(Request{Holder: "me", Filter: Filter{Target: "example.com"}})
	assert.Equal(t, "a", l.Proxy.Name)
	assert.Equal(t, map[string]string{"pool": "news"}, l.Proxy.Labels)
	assert.Equal(t, "me", l.Holder)
	assert.Equal(t, r.clock.Now().Add(DefaultTTL), l.ExpireTime)
	assert.Positive(t, l.FencingToken)
	u, err := url.Parse(l.Endpoint.URL)
	require.NoError(t, err)
	password, _ := u.User.Password()
	assert.Equal(t, `p:@/?#%é "`, password, "byte-exact through the URL")
	assert.Equal(t, `p:@/?#%é "`, l.Endpoint.Password)
	assert.Equal(t, "crawler", u.User.Username())
	assert.Equal(t, "192.0.2.1:3128", u.Host)
}

func TestFiftyAtOnceOverFivePlacesGiveFiveLeases(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(5)})
	var mu sync.Mutex
	granted, refused := 0, 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, err := r.acquire(context.Background(), Request{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				granted++
			} else if reason := asError(err).Reason; reason == NoCapacity || reason == Contention {
				refused++
			}
		})
	}
	wg.Wait()
	require.Equal(t, 5, granted)
	require.Equal(t, 45, refused)
	require.Equal(t, 5, r.live())
}

func TestOneCallPerAcquireRenewAndRelease(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(10, 5))
	s := newSpy(r.store)
	r.Service = r.instance(s)
	for range 25 {
		l := r.mustAcquire(Request{})
		_, err := r.Renew(t.Context(), l.ID, 0)
		require.NoError(t, err)
		require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
	}
	require.Equal(t, map[string]int{"create": 25, "replace": 25, "delete": 25}, s.calls)
}

func TestHalfFullFleetCostsLittleMoreThanOneCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(100, 5))
	s := newSpy(r.store)
	r.Service = r.instance(s)
	for range 250 {
		r.mustAcquire(Request{})
	}
	require.LessOrEqual(t, s.total(), 275)
}

func TestNearlyFullFleetAnswersInTenCallsWhoeverFilledIt(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 100} {
		r := newRig(t, fleetOf(n, 5))
		for range n*5 - max(1, n*5/100) {
			r.mustAcquire(Request{})
		}
		for range 20 {
			s := newSpy(r.store)
			fresh := r.instance(s) // an instance that knows nothing of the slots
			_, err := fresh.catalog.get(t.Context())
			require.NoError(t, err)
			l, err := fresh.Acquire(t.Context(), Request{TTL: DefaultTTL})
			require.LessOrEqual(t, s.total(), 10)
			if err == nil {
				require.NoError(t, fresh.Release(t.Context(), l.ID, OutcomeOK, ""))
			} else {
				require.Contains(t, []Reason{NoCapacity, Contention}, asError(err).Reason)
			}
		}
	}
}

func TestTheInstanceThatFilledAFleetFindsItsLastPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(20, 5))
	for range 99 {
		r.mustAcquire(Request{})
	}
	s := newSpy(r.store)
	r.Store = s
	for range 50 {
		l := r.mustAcquire(Request{})
		require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
	}
	require.Equal(t, map[string]int{"create": 50, "delete": 50}, s.calls)
}

func TestFullFleetSaysNoCapacity(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(2, 2))
	for range 4 {
		r.mustAcquire(Request{})
	}
	_, err := r.acquire(t.Context(), Request{})
	r.refused(NoCapacity, err)
	_, err = r.instance(r.store).Acquire(t.Context(), Request{TTL: DefaultTTL})
	r.refused(NoCapacity, err)
}

func TestEveryRefusalSaysWhy(t *testing.T) {
	t.Parallel()
	gate := func(g fleet.Gate) fleet.Entry {
		e := ready(5)
		e.Gate = g
		return e
	}
	sick := ready(5)
	sick.Verdict.Healthy = false
	otherVM := ready(5)
	otherVM.Verdict.Incarnation = 7
	banned := ready(5)
	banned.Quarantine = map[string]time.Time{"shop.example": time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, row := range []struct {
		name    string
		entries map[string]fleet.Entry
		filter  Filter
		want    Reason
	}{
		{"no proxies", nil, Filter{}, NoProxies},
		{"no such label", fleetOf(1, 5), Filter{Labels: map[string]string{"pool": "x"}}, FilterEmpty},
		{"no such provider", fleetOf(1, 5), Filter{Provider: "x"}, FilterEmpty},
		{"no such region", fleetOf(1, 5), Filter{Region: "x"}, FilterEmpty},
		{"excluded", fleetOf(1, 5), Filter{Exclude: []string{"p-000"}}, FilterEmpty},
		{"unhealthy", map[string]fleet.Entry{"a": sick}, Filter{}, NoneHealthy},
		{"verdict of another VM", map[string]fleet.Entry{"a": otherVM}, Filter{}, NoneHealthy},
		{"draining", map[string]fleet.Entry{"a": gate(fleet.GateDraining)}, Filter{}, NoneHealthy},
		{"paused", map[string]fleet.Entry{"a": gate(fleet.GatePaused)}, Filter{}, NoneHealthy},
		{"max leases is zero", map[string]fleet.Entry{"a": gate(fleet.GateDisabled)}, Filter{}, NoneHealthy},
		{"banned by the target", map[string]fleet.Entry{"a": banned}, Filter{Target: "Shop.example"}, Quarantined},
		{"no capacity at all", fleetOf(2, 0), Filter{}, NoCapacity},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, row.entries)
			_, err := r.acquire(t.Context(), Request{Filter: row.filter})
			r.refused(row.want, err)
		})
	}
	r := newRig(t, map[string]fleet.Entry{"a": banned})
	r.mustAcquire(Request{Filter: Filter{Target: "other.example"}})
}

func TestARepeatedRequestGetsTheSameLease(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(3, 5))
	first := r.mustAcquire(Request{RequestID: "one", Holder: "me"})
	again, err := r.instance(r.store).Acquire(t.Context(), Request{RequestID: "one", Holder: "me", TTL: DefaultTTL})
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, 1, r.live())

	other := r.mustAcquire(Request{RequestID: "one", Holder: "somebody else"})
	require.NotEqual(t, first.ID, other.ID, "request ids of two holders do not meet")

	_, err = r.acquire(t.Context(), Request{RequestID: "one", Holder: "me", TTL: time.Minute})
	r.refused(RequestIDReused, err)
	require.NoError(t, r.Release(t.Context(), first.ID, OutcomeOK, ""))
	_, err = r.acquire(t.Context(), Request{RequestID: "one", Holder: "me"})
	r.refused(LeaseExpired, err)
}

func TestARepeatedRequestIsAnsweredThoughTheFleetIsFullOrSick(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(1)})
	first := r.mustAcquire(Request{RequestID: "one"})
	again := r.mustAcquire(Request{RequestID: "one"})
	require.Equal(t, first.ID, again.ID)
	r.change("a", func(e *fleet.Entry) { e.Verdict.Healthy = false })
	again = r.mustAcquire(Request{RequestID: "one"})
	require.Equal(t, first.ID, again.ID)
}

func TestDuplicatesAtOnceGetOneLease(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(10, 5))
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			l, err := r.acquire(context.Background(), Request{RequestID: "same"})
			if assert.NoError(t, err) {
				ids[i] = l.ID
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.Equal(t, 1, r.live())
}

func TestOurOwnRepeatedCommitIsNoConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(1)})
	s := newSpy(r.store)
	r.Service = r.instance(s)
	s.lose["create"] = true
	l := r.mustAcquire(Request{})
	s.lose["replace"] = true
	_, err := r.Renew(t.Context(), l.ID, 0)
	require.NoError(t, err)
	s.lose["delete"] = true
	require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
	require.Zero(t, r.live())
}

func TestACrawlerThatDiesCostsItsPlaceUntilExpiryAndNoSweepIsNeeded(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(1)})
	dead := r.mustAcquire(Request{TTL: time.Minute})
	r.clock.Advance(time.Minute + Skew)
	_, err := r.instance(r.store).Acquire(t.Context(), Request{TTL: DefaultTTL})
	r.refused(NoCapacity, err)
	r.clock.Advance(time.Millisecond)
	next, err := r.instance(r.store).Acquire(t.Context(), Request{TTL: DefaultTTL})
	require.NoError(t, err)
	require.Greater(t, next.FencingToken, dead.FencingToken)

	_, err = r.Renew(t.Context(), dead.ID, 0)
	r.refused(LeaseExpired, err)
	require.NoError(t, r.Release(t.Context(), dead.ID, OutcomeOK, ""), "late, and no harm done")
	_, err = r.Service.Get(t.Context(), next.ID)
	require.NoError(t, err, "the new holder is unaffected")
}

func TestTwoWhoTakeOverTheSamePlaceGetOneLease(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(1)})
	r.mustAcquire(Request{TTL: time.Minute})
	r.clock.Advance(time.Hour)
	granted := make(chan Lease, 8)
	var wg sync.WaitGroup
	for range 8 {
		s := r.instance(r.store)
		wg.Go(func() {
			if l, err := s.Acquire(context.Background(), Request{TTL: DefaultTTL}); err == nil {
				granted <- l
			}
		})
	}
	wg.Wait()
	require.Len(t, granted, 1)
}

func TestMaxLeasesCutKeepsLeasesAndGrantsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(5)})
	var ids []string
	for range 4 {
		ids = append(ids, r.mustAcquire(Request{}).ID)
	}
	r.change("a", func(e *fleet.Entry) { e.MaxLeases, e.Capacity = 2, 0 })
	_, err := r.acquire(t.Context(), Request{})
	r.refused(NoCapacity, err)
	for _, id := range ids {
		_, err := r.Renew(t.Context(), id, 0)
		require.NoError(t, err)
	}
}

func TestNoLeaseFromACatalogThatIsTooOld(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	s := newSpy(r.store)
	r.Service = r.instance(s)
	r.mustAcquire(Request{})
	s.fail = errors.New("the store is on fire")
	r.clock.Advance(stale)
	_, err := r.acquire(t.Context(), Request{})
	r.refused(StoreUnavailable, err)
	require.NotContains(t, err.Error(), "fire", "callers learn the reason, the log the cause")
	s.fail = nil
	r.mustAcquire(Request{})
}

func TestAFlippedVerdictIsSeenWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	r.mustAcquire(Request{})
	require.NoError(t, r.store.SetVerdict(t.Context(), 0, "p-000", fleet.Verdict{Incarnation: 1}))
	r.clock.Advance(stale)
	_, err := r.acquire(t.Context(), Request{})
	r.refused(NoneHealthy, err)
}

func TestManyAtOnceReadTheCatalogOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fleetOf(1, 100))
		reads := make(chan struct{}, 100)
		r.Service = New(Deps{Store: slowCatalog{r.store, reads}, Secrets: r.vault, Now: time.Now})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { _, _ = r.acquire(t.Context(), Request{}) })
		}
		wg.Wait()
		require.Len(t, reads, 1)
	})
}

func TestWaitingEndsWhenAPlaceIsFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[string]fleet.Entry{"a": ready(1)})
		r.Service = New(Deps{Store: r.store, Secrets: r.vault, Now: time.Now})
		l := r.mustAcquire(Request{})
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // fake time: arrive in this order
				got, err := r.acquire(t.Context(), Request{Wait: 20 * time.Second, Holder: strconv.Itoa(i)})
				if err == nil {
					order <- i
					time.Sleep(time.Second)
					_ = r.Release(t.Context(), got.ID, OutcomeOK, "")
				}
			}()
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
		for i := range 3 {
			require.Equal(t, i, <-order, "by arrival")
		}
		require.Less(t, time.Since(began), 3*time.Second)
		time.Sleep(2 * time.Second)
	})
}

func TestWaitingEndsInTimeAndWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[string]fleet.Entry{"a": ready(1)})
		r.Service = New(Deps{Store: r.store, Secrets: r.vault, Now: time.Now})
		r.mustAcquire(Request{TTL: time.Hour})
		began := time.Now()
		_, err := r.acquire(t.Context(), Request{Wait: 20 * time.Second})
		r.refused(NoCapacity, err)
		require.Equal(t, 20*time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = r.acquire(ctx, Request{Wait: 20 * time.Second})
		require.Error(t, err)
		require.Equal(t, 21*time.Second, time.Since(began))
	})
}

func TestWaitingEndsAtOnceWhenTheRequestCanNeverBeMet(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	r.mustAcquire(Request{RequestID: "x"})
	_, err := r.acquire(t.Context(), Request{RequestID: "x", TTL: time.Minute, Wait: 30 * time.Second})
	r.refused(RequestIDReused, err)
	began := time.Now()
	_, err = r.acquire(t.Context(), Request{Wait: 30 * time.Second, Filter: Filter{Region: "none"}})
	r.refused(FilterEmpty, err)
	_, err = newRig(t, nil).acquire(t.Context(), Request{TTL: time.Minute, Wait: 30 * time.Second})
	r.refused(NoProxies, err)
	require.Less(t, time.Since(began), 10*time.Second)
}

func TestBatchPrefersDistinctProxiesAndGivesWhatThereIs(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(3, 2))
	b, err := r.AcquireBatch(t.Context(), Request{TTL: DefaultTTL}, 3)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, l := range b.Leases {
		names[l.Proxy.Name] = true
	}
	require.Len(t, names, 3)
	b, err = r.AcquireBatch(t.Context(), Request{TTL: DefaultTTL, RequestID: "b"}, 5)
	require.NoError(t, err)
	require.Len(t, b.Leases, 3)
	require.Equal(t, 2, b.Missing)
	require.Equal(t, NoCapacity, b.Reason)
	again, err := r.AcquireBatch(t.Context(), Request{TTL: DefaultTTL, RequestID: "b"}, 5)
	require.NoError(t, err)
	require.Len(t, again.Leases, 3)
	require.ElementsMatch(t, ids(b), ids(again), "a repeated batch finds its leases")
	_, err = r.AcquireBatch(t.Context(), Request{TTL: DefaultTTL}, 5)
	r.refused(NoCapacity, err)
}

func TestABatchThatGaveTwoOfOneProxyFindsThemAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(2, 3))
	ask := Request{TTL: DefaultTTL, RequestID: "b", Filter: Filter{Target: "shop.example"}}
	b, err := r.AcquireBatch(t.Context(), ask, 5)
	require.NoError(t, err)
	require.Len(t, b.Leases, 5)
	for range 2 {
		again, err := r.instance(r.store).AcquireBatch(t.Context(), ask, 5)
		require.NoError(t, err)
		require.Equal(t, ids(b), ids(again))
		require.Zero(t, again.Missing)
	}
	require.Equal(t, 5, r.live())
	_, err = r.AcquireBatch(t.Context(), ask, 4)
	r.refused(RequestIDReused, err)
	ask.Target = "other.example"
	_, err = r.AcquireBatch(t.Context(), ask, 5)
	r.refused(RequestIDReused, err)
}

func TestABatchOfWhatDoesNotExistSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(2, 3))
	_, err := r.AcquireBatch(t.Context(), Request{TTL: DefaultTTL, Filter: Filter{Region: "none"}}, 5)
	r.refused(FilterEmpty, err)
	require.Zero(t, r.live())
}

func ids(b Batch) []string {
	var out []string
	for _, l := range b.Leases {
		out = append(out, l.ID)
	}
	return out
}

func TestCredentialsThatCannotBeReadCostNoPlace(t *testing.T) {
	t.Parallel()
	e := ready(1)
	e.Credentials = &fleet.SecretRef{Name: "auth"}
	r := newRig(t, map[string]fleet.Entry{"a": e})
	_, err := r.acquire(t.Context(), Request{})
	r.refused(StoreUnavailable, err)
	require.Zero(t, r.live())
	r.vault["auth/"] = "no-colon-hunter2"
	_, err = r.acquire(t.Context(), Request{})
	r.refused(StoreUnavailable, err)
	require.NotContains(t, fmt.Sprint(err, asError(err).Err), "hunter2")
	r.vault["auth/"] = "u:p"
	require.Equal(t, "u", r.mustAcquire(Request{}).Endpoint.Username)
}

func TestACommitWhoseAnswerWasAnOutageLeavesNoPlaceTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	r.Service = r.instance(cutOff{r.store})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.acquire(context.WithValue(ctx, cutKey{}, cancel), Request{})
	r.refused(StoreUnavailable, err)
	require.Zero(t, r.live(), "also when the crawler has gone away")
	_, err = r.acquire(t.Context(), Request{RequestID: "x"})
	r.refused(StoreUnavailable, err)
	require.Equal(t, 1, r.live(), "a repeated call finds it")
	r.Service = r.instance(r.store)
	r.mustAcquire(Request{RequestID: "x"})
	require.Equal(t, 1, r.live())
}

type cutKey struct{}

// cutOff commits, and answers that the store is away; the caller's context ends meanwhile.
type cutOff struct{ *memory.Store }

func (c cutOff) CreateSlot(ctx context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	_, _ = c.Store.CreateSlot(ctx, s, req)
	if cancel, ok := ctx.Value(cutKey{}).(context.CancelFunc); ok {
		cancel()
	}
	return s, errors.New("connection lost")
}

func TestALookThatIsOlderThanAReleaseDoesNotHideTheFreePlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{})
	old, err := r.store.GetSlot(t.Context(), "p-000", 0)
	require.NoError(t, err)
	require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
	r.known.learn(old) // what a slower request has read before
	s := newSpy(r.store)
	r.Store = s
	r.mustAcquire(Request{})
	require.Equal(t, map[string]int{"create": 1}, s.calls)
}
