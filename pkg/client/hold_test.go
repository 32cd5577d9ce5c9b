package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/lease"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// direct calls the lease function without a network, in the time of a test.
type direct struct {
	t     *testing.T
	store *memory.Store
	api   http.Handler
	ahead time.Duration // of the server's clock

	mu     sync.Mutex
	lose   error         // instead of an answer
	slow   time.Duration // before a renewal is served
	renews int
}

func newDirect(t *testing.T, ahead time.Duration) (*direct, *Client) {
	t.Helper()
	d := &direct{t: t, ahead: ahead}
	d.store = memory.New(d.now)
	d.publish(func(*fleet.Entry) {})
	d.api = (&lease.Server{Service: lease.New(lease.Deps{Store: d.store, Now: d.now})}).Handler()
	c, err := New(Config{URL: "http://lease", HTTP: &http.Client{Transport: d}})
	require.NoError(t, err)
	return d, c
}

func (d *direct) now() time.Time { return time.Now().Add(d.ahead) }

func (d *direct) publish(change func(*fleet.Entry)) {
	d.t.Helper()
	e := fleet.Entry{
		Host: "192.0.2.1", Port: 3128, Incarnation: 1, MaxLeases: 1, Capacity: 1, Ceiling: 1, Verdict: fleet.Verdict{Healthy: true, Incarnation: 1},
	}
	change(&e)
	shards, err := d.store.ReadCatalog(context.Background())
	require.NoError(d.t, err)
	sh := store.Shard{}
	if len(shards) > 0 {
		sh = shards[0]
	}
	_, err = d.store.WriteShard(context.Background(), sh, map[string]fleet.Entry{"a": e}, nil)
	require.NoError(d.t, err)
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	lose, slow := d.lose, time.Duration(0)
	if strings.HasSuffix(r.URL.Path, ":renew") {
		d.renews++
		slow = d.slow
	}
	d.mu.Unlock()
	if lose != nil {
		return nil, lose
	}
	if err := sleep(r.Context(), slow); err != nil && slow > 0 {
		return nil, err
	}
	w := httptest.NewRecorder()
	w.Header().Set("Date", d.now().UTC().Format(http.TimeFormat))
	d.api.ServeHTTP(w, r)
	return w.Result(), nil
}

func (d *direct) loseAll(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose = err
}

func (d *direct) renewals() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.renews
}

func (d *direct) live() int {
	d.t.Helper()
	n, err := d.store.CountSlots(context.Background(), d.now())
	require.NoError(d.t, err)
	return int(n)
}

func isLost(h *Held) bool {
	select {
	case <-h.Lost():
		return true
	default:
		return false
	}
}

func TestAHeldLeaseLivesUntilItIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"clocks agree": 0, "our clock is late": time.Hour, "our clock is early": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, c := newDirect(t, ahead)
				h, err := c.Hold(t.Context(), Request{TTLSeconds: 60})
				require.NoError(t, err)
				first := h.Lease()
				for range 60 {
					time.Sleep(time.Minute)
					require.Equal(t, 1, d.live())
					require.False(t, isLost(h))
				}
				require.Equal(t, first.ID, h.Lease().ID)
				require.InDelta(t, 60*60/27, d.renewals(), 30, "about two renewals in the time of a lease, no more")
				require.NoError(t, h.Release(t.Context(), OK, ""))
				require.Zero(t, d.live())
				require.NoError(t, h.Release(t.Context(), OK, ""), "once more")
				require.NoError(t, h.Err())
				require.False(t, isLost(h), "given back is not lost")
				renews := d.renewals()
				time.Sleep(time.Hour)
				require.Equal(t, renews, d.renewals())
			})
		})
	}
}

func TestAnOutageShorterThanTheLeaseDoesNotLoseIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := newDirect(t, 0)
		h, err := c.Hold(t.Context(), Request{TTLSeconds: 60})
		require.NoError(t, err)
		d.loseAll(errors.New("no route to host"))
		time.Sleep(55 * time.Second)
		d.loseAll(nil)
		time.Sleep(10 * time.Minute)
		require.False(t, isLost(h))
		require.Equal(t, 1, d.live())
		require.NoError(t, h.Release(t.Context(), OK, ""))
	})
}

func TestALeaseThatCannotBeRenewedIsLostWhenItExpiresAndNotLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := newDirect(t, 0)
		h, err := c.Hold(t.Context(), Request{TTLSeconds: 60})
		require.NoError(t, err)
		began := time.Now()
		outage := errors.New("no route to host")
		d.loseAll(outage)
		<-h.Lost()
		require.LessOrEqual(t, time.Since(began), time.Minute)
		require.Greater(t, time.Since(began), 55*time.Second)
		require.ErrorIs(t, h.Err(), outage)
		d.loseAll(nil)
		require.NoError(t, h.Release(t.Context(), OK, ""))
	})
}

func TestALeaseThatTheServerEndedIsLostAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := newDirect(t, 0)
		h, err := c.Hold(t.Context(), Request{TTLSeconds: 60})
		require.NoError(t, err)
		require.NoError(t, c.Release(t.Context(), h.Lease().ID, OK, ""))
		<-h.Lost()
		require.True(t, Ended(h.Err()), h.Err())
		require.NoError(t, h.Release(t.Context(), OK, ""))
	})
}

func TestALeaseOnAProxyOnItsWayOutSaysSoAndIsLostAtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := newDirect(t, 0)
		h, err := c.Hold(t.Context(), Request{TTLSeconds: 60})
		require.NoError(t, err)
		deadline := time.Now().Add(3 * time.Minute)
		d.publish(func(e *fleet.Entry) { e.Gate, e.DrainDeadline = fleet.GateDraining, deadline })
		time.Sleep(time.Minute)
		require.True(t, h.Lease().Draining)
		require.NotEmpty(t, h.Lease().Endpoint.URL)
		<-h.Lost()
		require.WithinDuration(t, deadline, time.Now(), 5*time.Second)
		require.False(t, time.Now().After(deadline))
		require.Less(t, d.renewals(), 20, "it does not ask ever faster")
		_ = h.Release(t.Context(), OK, "")
	})
}

func TestARenewalKeepsTheEndpointOfTheReplacedMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := newDirect(t, 0)
		h, err := c.Hold(t.Context(), Request{TTLSeconds: 60})
		require.NoError(t, err)
		url := h.Lease().Endpoint.URL
		d.publish(func(e *fleet.Entry) {
			e.Incarnation, e.DrainingBelow, e.DrainDeadline, e.Host = 2, 2, time.Now().Add(time.Hour), "192.0.2.2"
		})
		time.Sleep(2 * time.Minute)
		require.True(t, h.Lease().Draining)
		require.Equal(t, url, h.Lease().Endpoint.URL)
		require.NoError(t, h.Release(t.Context(), OK, ""))
	})
}

func TestRenewingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := newDirect(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		h, err := c.Hold(ctx, Request{TTLSeconds: 60})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, d.live())
		cancel()
		time.Sleep(2 * time.Minute)
		require.Zero(t, d.live(), "the lease ended by itself")
		require.False(t, isLost(h))
		require.NoError(t, h.Release(t.Context(), OK, ""))
	})
}

func TestARenewalUnderWayDoesNotLoseALeaseThatIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := newDirect(t, 0)
		d.slow = 10 * time.Second
		h, err := c.Hold(t.Context(), Request{TTLSeconds: 60})
		require.NoError(t, err)
		time.Sleep(35 * time.Second)
		require.Equal(t, 1, d.renewals())
		require.NoError(t, h.Release(t.Context(), OK, ""))
		time.Sleep(time.Minute)
		require.False(t, isLost(h))
		require.Zero(t, d.live())
	})
}

func TestHoldRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := newDirect(t, 0)
		_, err := c.Hold(t.Context(), Request{Region: "none"})
		var r *Refusal
		require.ErrorAs(t, err, &r)
		require.Equal(t, "FILTER_EMPTY", r.Reason)
	})
}
