package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

func TestRenewMovesTheExpiryByServerTimeOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{})
	r.clock.Advance(time.Minute)
	got, err := r.Renew(t.Context(), l.ID, 0)
	require.NoError(t, err)
	require.Equal(t, r.clock.Now().Add(DefaultTTL), got.ExpireTime)
	require.Equal(t, l.FencingToken, got.FencingToken, "the same holder keeps its token")
	require.Equal(t, l.Endpoint, got.Endpoint)
}

func TestRenewByAnotherInstanceKeepsTheToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{})
	other := r.instance(r.store)
	for range 3 {
		r.clock.Advance(time.Second)
		got, err := other.Renew(t.Context(), l.ID, 0)
		require.NoError(t, err)
		require.Equal(t, l.FencingToken, got.FencingToken)
		_, err = r.Renew(t.Context(), l.ID, 0) // the first one's version is out of date by now
		require.NoError(t, err)
	}
}

func TestRenewNeverShortensUnasked(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{TTL: time.Hour})
	got, err := r.Renew(t.Context(), l.ID, 0)
	require.NoError(t, err)
	require.Equal(t, l.ExpireTime, got.ExpireTime)
	got, err = r.Renew(t.Context(), l.ID, time.Minute)
	require.NoError(t, err)
	require.Equal(t, r.clock.Now().Add(time.Minute), got.ExpireTime, "asked, it does")
}

func TestRenewNeverRevives(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{TTL: time.Minute})
	r.clock.Advance(time.Minute + time.Millisecond)
	_, err := r.Renew(t.Context(), l.ID, 0)
	r.refused(LeaseExpired, err)
	_, err = r.instance(r.store).Renew(t.Context(), l.ID, 0)
	r.refused(LeaseExpired, err)
	_, err = r.Service.Get(t.Context(), l.ID)
	r.refused(LeaseExpired, err)
}

func TestRenewAfterReleaseIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{})
	require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
	_, err := r.Renew(t.Context(), l.ID, 0)
	r.refused(LeaseExpired, err)
}

func TestReleaseTwiceIsSuccessAndUnknownIsNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{})
	for range 2 {
		require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
		require.NoError(t, r.instance(r.store).Release(t.Context(), l.ID, OutcomeOK, ""))
	}
	for _, id := range []string{"", "x", "a.b.c", "p-000.0.short", "p-000.00." + r.ID(), "p-000.-1." + r.ID(), "P.0." + r.ID(), "p-000.0.UPPERCASEUPPERCASE", "p-000.0." + r.ID() + ".x"} {
		r.refused(LeaseNotFound, r.Release(t.Context(), id, OutcomeOK, ""))
		_, err := r.Renew(t.Context(), id, 0)
		r.refused(LeaseNotFound, err)
	}
}

func TestDrainingLeaseIsToldSoAndEndsWithTheDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	l := r.mustAcquire(Request{})
	deadline := r.clock.Now().Add(2 * time.Minute)
	r.change("p-000", func(e *fleet.Entry) { e.Gate, e.DrainDeadline = fleet.GateDraining, deadline })
	_, err := r.acquire(t.Context(), Request{})
	r.refused(NoneHealthy, err)
	got, err := r.Renew(t.Context(), l.ID, 0)
	require.NoError(t, err)
	require.True(t, got.Draining)
	require.Equal(t, deadline, got.ExpireTime)
	r.clock.Advance(3 * time.Minute)
	_, err = r.Renew(t.Context(), l.ID, 0)
	require.Error(t, err)
}

func TestReplacedVMDrainsItsOwnLeasesOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	old := r.mustAcquire(Request{})
	deadline := r.clock.Now().Add(2 * time.Minute)
	r.change("p-000", func(e *fleet.Entry) {
		e.Host, e.Incarnation, e.Verdict.Incarnation = "192.0.2.2", 2, 2
		e.DrainingBelow, e.DrainDeadline = 2, deadline
	})
	fresh := r.mustAcquire(Request{})
	require.Equal(t, "192.0.2.2", fresh.Endpoint.Host)
	got, err := r.Renew(t.Context(), fresh.ID, 0)
	require.NoError(t, err)
	require.False(t, got.Draining)
	got, err = r.Renew(t.Context(), old.ID, 0)
	require.NoError(t, err)
	require.True(t, got.Draining)
	require.Nil(t, got.Endpoint, "its address is that of a VM on its way out: keep what you have")
	require.Equal(t, deadline, got.ExpireTime)
}

func TestLeaseOfAProxyThatIsGoneIsRevoked(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(2, 1))
	l := r.mustAcquire(Request{Filter: Filter{Exclude: []string{"p-001"}}})
	r.publish(map[string]fleet.Entry{"p-001": ready(1)})
	r.clock.Advance(stale)
	_, err := r.Renew(t.Context(), l.ID, 0)
	r.refused(LeaseRevoked, err)
}

func TestThreeBansKeepAProxyFromThatHostOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	shop := Filter{Target: "shop.example"}
	first := r.mustAcquire(Request{Filter: shop})
	for range 5 {
		require.NoError(t, r.Report(t.Context(), first.ID, OutcomeBanned, ""))
	}
	r.clock.Advance(stale)
	second := r.mustAcquire(Request{Filter: shop})
	require.NoError(t, r.Release(t.Context(), second.ID, OutcomeBanned, "shop.example"))
	third := r.mustAcquire(Request{Filter: shop})
	require.NoError(t, r.Report(t.Context(), third.ID, OutcomeBanned, "SHOP.example"))
	r.clock.Advance(stale)
	_, err := r.acquire(t.Context(), Request{Filter: shop})
	r.refused(Quarantined, err)
	r.mustAcquire(Request{Filter: Filter{Target: "other.example"}})
	r.mustAcquire(Request{})
	p, err := r.Proxy(t.Context(), "p-000")
	require.NoError(t, err)
	require.Equal(t, []string{"shop.example"}, p.Quarantined)
	r.clock.Advance(quarantineTime)
	r.mustAcquire(Request{Filter: shop})
}

func TestBansOfLongAgoDoNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	for range 4 {
		l := r.mustAcquire(Request{Filter: Filter{Target: "shop.example"}})
		require.NoError(t, r.Release(t.Context(), l.ID, OutcomeBanned, ""))
		r.clock.Advance(banWindow/2 + time.Second)
	}
	r.mustAcquire(Request{Filter: Filter{Target: "shop.example"}})
}

func TestReportOfAnEndedLeaseIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	l := r.mustAcquire(Request{TTL: time.Minute})
	r.clock.Advance(2 * time.Minute)
	r.refused(LeaseExpired, r.Report(t.Context(), l.ID, OutcomeOK, ""))
	r.refused(LeaseNotFound, r.Report(t.Context(), "nonsense", OutcomeOK, ""))
}

func TestStickyKeysStayAndMoveAsFewAsPossible(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(10, 50))
	home := map[string]string{}
	for i := range 100 {
		key := fmt.Sprint(i)
		for range 2 {
			l := r.mustAcquire(Request{StickyKey: key})
			require.False(t, l.Rebound)
			if home[key] == "" {
				home[key] = l.Proxy.Name
			}
			require.Equal(t, home[key], l.Proxy.Name)
			require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
		}
	}
	r.change("p-003", func(e *fleet.Entry) { e.Gate = fleet.GateDraining })
	for key, before := range home {
		l := r.mustAcquire(Request{StickyKey: key})
		if before != "p-003" {
			require.Equal(t, before, l.Proxy.Name, "only keys of the lost proxy move")
		} else {
			require.NotEqual(t, before, l.Proxy.Name)
		}
		require.NoError(t, r.Release(t.Context(), l.ID, OutcomeOK, ""))
	}
}

func TestStickyKeyWhoseProxyIsFullIsRebound(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(3, 1))
	first := r.mustAcquire(Request{StickyKey: "k"})
	require.False(t, first.Rebound)
	second := r.mustAcquire(Request{StickyKey: "k"})
	require.True(t, second.Rebound)
	require.NotEqual(t, first.Proxy.Name, second.Proxy.Name)
}

func TestADeletedCatalogEndsNoLease(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{})
	entries, err := r.store.ReadCatalog(t.Context())
	require.NoError(t, err)
	for name, shards := range map[string][]store.Shard{"deleted": nil, "unreadable": {{Version: r.clock.Now()}}} {
		s := &otherCatalog{Store: r.store, shards: shards}
		for _, service := range []*Service{r.instance(s), r.Service} {
			service.catalog.store = s
			r.clock.Advance(stale)
			_, err = service.Renew(t.Context(), l.ID, 0)
			require.Equal(t, StoreUnavailable, asError(err).Reason, name)
		}
		s.shards = entries
		r.clock.Advance(stale)
		_, err = r.Renew(t.Context(), l.ID, 0)
		require.NoError(t, err, "it is rebuilt, and nothing was lost")
	}
}

// otherCatalog is a store whose catalog the test writes itself.
type otherCatalog struct {
	*memory.Store
	shards []store.Shard
}

func (o *otherCatalog) ReadCatalog(context.Context) ([]store.Shard, error) { return o.shards, nil }

func TestALeaseOfAProxyThatIsGoneIsRevokedWhetherItsSlotIsOrNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(1), "b": ready(1)})
	l := r.mustAcquire(Request{Filter: Filter{Exclude: []string{"b"}}})
	r.publish(map[string]fleet.Entry{"b": ready(1)})
	r.clock.Advance(stale)
	_, err := r.Renew(t.Context(), l.ID, 0)
	r.refused(LeaseRevoked, err)
	slot, err := r.store.GetSlot(t.Context(), "a", 0)
	require.NoError(t, err)
	require.NoError(t, r.store.DeleteSlot(t.Context(), slot))
	_, err = r.Renew(t.Context(), l.ID, 0)
	r.refused(LeaseRevoked, err)
	_, err = r.Service.Get(t.Context(), l.ID)
	r.refused(LeaseRevoked, err)
}

func TestALookAtALeaseWhoseDrainIsOverSaysRevoked(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	l := r.mustAcquire(Request{TTL: time.Hour})
	r.change("p-000", func(e *fleet.Entry) { e.Gate, e.DrainDeadline = fleet.GateDraining, r.clock.Now().Add(time.Minute) })
	got, err := r.Service.Get(t.Context(), l.ID)
	require.NoError(t, err)
	require.True(t, got.Draining)
	r.clock.Advance(time.Minute)
	_, err = r.Service.Get(t.Context(), l.ID)
	r.refused(LeaseRevoked, err)
}

func TestAReleaseWhoseBanCannotBeNotedFreesTheSlotAllTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	r.Service = r.instance(noBans{r.store})
	l := r.mustAcquire(Request{Filter: Filter{Target: "shop.example"}})
	err := r.Release(t.Context(), l.ID, OutcomeBanned, "")
	r.refused(StoreUnavailable, err)
	require.Zero(t, r.live())
	require.NoError(t, r.Release(t.Context(), l.ID, OutcomeBanned, ""))
}

type noBans struct{ *memory.Store }

func (noBans) RecordBan(context.Context, string, string, string, time.Time, time.Duration) (int, error) {
	return 0, errors.New("away")
}

func TestAReleaseThatIsRepeatedBecauseTheSlotCouldNotBeFreedCountsItsBanOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	s := newSpy(r.store)
	r.Service = r.instance(s)
	l := r.mustAcquire(Request{Filter: Filter{Target: "shop.example"}})
	for range 3 {
		s.failOn("delete", errors.New("away"))
		r.refused(StoreUnavailable, r.Release(t.Context(), l.ID, OutcomeBanned, ""))
	}
	s.failOn("", nil)
	require.NoError(t, r.Release(t.Context(), l.ID, OutcomeBanned, ""))
	r.clock.Advance(stale)
	r.mustAcquire(Request{Filter: Filter{Target: "shop.example"}})
}
