package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestAKeyStaysWithItsProxyAsLongAsThatHasASlotWhoeverTookTheOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(20, 5))
	first := r.mustAcquire(Request{StickyKey: "shop"})
	require.False(t, first.Rebound)
	for range 4 { // each by an instance that knows nothing
		s := newSpy(r.store)
		l, err := r.instance(s).Acquire(t.Context(), Request{TTL: DefaultTTL, StickyKey: "shop"})
		require.NoError(t, err)
		require.Equal(t, first.Proxy.Name, l.Proxy.Name)
		require.False(t, l.Rebound)
		require.LessOrEqual(t, s.total(), 4)
	}
	l, err := r.instance(r.store).Acquire(t.Context(), Request{TTL: DefaultTTL, StickyKey: "shop"})
	require.NoError(t, err)
	require.NotEqual(t, first.Proxy.Name, l.Proxy.Name)
	require.True(t, l.Rebound, "the first one is full")
}

func TestAKeyComesBackToAProxyThatOnlySeemedFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(20, 1))
	first := r.mustAcquire(Request{StickyKey: "shop"})
	require.True(t, r.mustAcquire(Request{StickyKey: "shop"}).Rebound)
	require.NoError(t, r.instance(r.store).Release(t.Context(), first.ID, OutcomeOK, ""), "elsewhere")
	again := r.mustAcquire(Request{StickyKey: "shop"})
	require.Equal(t, first.Proxy.Name, again.Proxy.Name)
	require.False(t, again.Rebound)
}

func TestAKeyWhoseProxiesAreFullGetsAnyGap(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(10, 2))
	for range 19 {
		r.mustAcquire(Request{})
	}
	granted := 0
	for i := range 20 {
		s := newSpy(r.store)
		fresh := r.instance(s)
		l, err := fresh.Acquire(t.Context(), Request{TTL: DefaultTTL, StickyKey: fmt.Sprint(i)})
		require.LessOrEqual(t, s.total(), 14)
		if err == nil {
			granted++
			require.NoError(t, fresh.Release(t.Context(), l.ID, OutcomeOK, ""))
		}
	}
	require.Equal(t, 20, granted, "two windows cover ten proxies")
}

func TestAKeysProxyThatIsUnhealthyIsLeftAndComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(20, 5))
	first := r.mustAcquire(Request{StickyKey: "shop"})
	r.change(first.Proxy.Name, func(e *fleet.Entry) { e.Verdict.Healthy = false })
	second := r.mustAcquire(Request{StickyKey: "shop"})
	require.NotEqual(t, first.Proxy.Name, second.Proxy.Name)
	require.Equal(t, second.Proxy.Name, r.mustAcquire(Request{StickyKey: "shop"}).Proxy.Name)
	r.change(first.Proxy.Name, func(e *fleet.Entry) { e.Verdict.Healthy = true })
	require.Equal(t, first.Proxy.Name, r.mustAcquire(Request{StickyKey: "shop"}).Proxy.Name)
}
