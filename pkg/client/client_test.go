package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/client/clienttest"
	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestALeaseIsTakenRenewedReportedAndGivenBack(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 1, "a")
	c := newClient(t, r)
	l, err := c.Acquire(t.Context(), Request{Holder: "me", Target: "shop.example", TTLSeconds: 60})
	require.NoError(t, err)
	assert.Equal(t, "a", l.Proxy.Name)
	assert.Equal(t, "me", l.Holder)
	assert.Equal(t, "shop.example", l.Target)
	assert.Positive(t, l.FencingToken)
	assert.Equal(t, clienttest.Password, l.Endpoint.Password)
	assert.Equal(t, time.Minute, l.ExpireTime.Sub(l.AcquireTime))
	again, err := c.Renew(t.Context(), l.ID, 2*time.Minute)
	require.NoError(t, err)
	assert.Greater(t, again.ExpireTime, l.ExpireTime.Add(30*time.Second))
	assert.Equal(t, l.FencingToken, again.FencingToken)
	require.NoError(t, c.Report(t.Context(), l.ID, OK, ""))
	require.Equal(t, 1, r.Live())
	require.NoError(t, c.Release(t.Context(), l.ID, OK, ""))
	require.NoError(t, c.Release(t.Context(), l.ID, OK, ""), "a second time is no error")
	require.Zero(t, r.Live())
	_, err = c.Renew(t.Context(), l.ID, 0)
	require.True(t, Ended(err), err)
}

func TestRefusalsCarryReasonAndWhenToComeBack(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 1, "a")
	c := newClient(t, r)
	for _, row := range []struct {
		name    string
		request Request
		want    Refusal
	}{
		{"nothing matches", Request{Provider: "none"}, Refusal{Code: 503, Reason: "FILTER_EMPTY", RetryAfter: 30 * time.Second}},
		{"a field is wrong", Request{TTLSeconds: 3}, Refusal{Code: 400, Reason: "INVALID_ARGUMENT", Metadata: map[string]string{"field": "ttlSeconds"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := c.Acquire(t.Context(), row.request)
			var got *Refusal
			require.ErrorAs(t, err, &got)
			require.NotEmpty(t, got.Message)
			require.Contains(t, err.Error(), row.want.Reason)
			got.Message = ""
			require.Equal(t, row.want, *got)
		})
	}
	err := c.Release(t.Context(), "nonsense", OK, "")
	require.True(t, Ended(err), err)
	require.False(t, Ended(errors.New("x")))
}

func TestALostAnswerIsAskedForAgainAndCostsNoSecondPlace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		lose http.HandlerFunc
	}{
		{"the connection breaks", clienttest.Slam},
		{"something in front answers", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "upstream", http.StatusBadGateway) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := clienttest.New(t, 5, "a")
			lost := 0
			r.Before(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if lost++; lost > 2 {
					next.ServeHTTP(w, req)
					return
				}
				next.ServeHTTP(httptest.NewRecorder(), req)
				row.lose(w, req)
			})
			c := newClient(t, r)
			l, err := c.Acquire(t.Context(), Request{})
			require.NoError(t, err)
			require.Equal(t, 1, r.Live())
			lost = 1
			require.NoError(t, c.Release(t.Context(), l.ID, OK, ""))
			require.Zero(t, r.Live())
			lost = -10
			_, err = c.Acquire(t.Context(), Request{})
			require.Error(t, err)
			require.Equal(t, 2+3+tries, r.Calls("/v1/leases")+r.Calls("release"), "it gives up")
		})
	}
}

func TestARefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 1, "a")
	_, err := newClient(t, r).Acquire(t.Context(), Request{Provider: "none"})
	require.Error(t, err)
	require.Equal(t, 1, r.Calls("/v1/leases"))
}

func TestCallsCarryTheToken(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 1, "a")
	var got string
	r.Before(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		got = req.Header.Get("Authorization")
		next.ServeHTTP(w, req)
	})
	token, failure := "k3y", error(nil)
	c, err := New(Config{URL: r.URL + "/", Token: func(context.Context) (string, error) { return token, failure }, HTTP: &http.Client{}})
	require.NoError(t, err)
	_, err = c.Acquire(t.Context(), Request{})
	require.NoError(t, err)
	require.Equal(t, "Bearer k3y", got)
	token = ""
	_, _ = c.Acquire(t.Context(), Request{})
	require.Empty(t, got)
	failure = errors.New("no token server")
	_, err = c.Acquire(t.Context(), Request{})
	require.ErrorIs(t, err, failure)
	require.Equal(t, 2, r.Calls("/v1/leases"), "nothing is sent without a token")
	c.http.CloseIdleConnections()
}

func TestURLsThatCannotBeALeaseFunction(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "lease.example", "ftp://x", "http://", "http://u:hunter2@x", "http://x?y=1", "http://x#y", "http://[::1"} {
		_, err := New(Config{URL: bad})
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestNoErrorShowsALeaseIdOrCredentials(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 1, "a")
	c := newClient(t, r)
	l, err := c.Acquire(t.Context(), Request{})
	require.NoError(t, err)
	r.Before(func(w http.ResponseWriter, req *http.Request, next http.Handler) { clienttest.Slam(w, req) })
	err = c.Release(t.Context(), l.ID, OK, "")
	require.Error(t, err)
	require.NotContains(t, err.Error(), l.ID)
	r.Before(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = w.Write([]byte(`{"id":7,"endpoint":{"password":"hunter2"}`))
	})
	_, err = c.Acquire(t.Context(), Request{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestACallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 1, "a")
	c := newClient(t, r)
	c.pause = time.Hour
	r.Before(func(w http.ResponseWriter, req *http.Request, next http.Handler) { clienttest.Slam(w, req) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Acquire(ctx, Request{})
	require.Error(t, err)
	require.True(t, strings.Contains(err.Error(), "lease function"), "it says what went wrong: %v", err)
}

func TestLeftIsCountedByTheServersClockAlone(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := clienttest.New(t, 1, "a")
			r.Advance(ahead)
			c := newClient(t, r)
			l, err := c.Acquire(t.Context(), Request{TTLSeconds: 60})
			require.NoError(t, err)
			require.InDelta(t, 59, l.Left.Seconds(), 1.01)
			require.LessOrEqual(t, l.Left, time.Minute)
			l, err = c.Renew(t.Context(), l.ID, 100*time.Second)
			require.NoError(t, err)
			require.InDelta(t, 99, l.Left.Seconds(), 1.01)
			require.LessOrEqual(t, l.Left, 100*time.Second)
		})
	}
}

func TestALeaseOnADrainingProxySaysSo(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 1, "a")
	c := newClient(t, r)
	l, err := c.Acquire(t.Context(), Request{})
	require.NoError(t, err)
	require.False(t, l.Draining)
	r.Change("a", func(e *fleet.Entry) {
		e.Gate, e.DrainDeadline = fleet.GateDraining, r.Now().Add(time.Minute)
	})
	r.Advance(10 * time.Second) // the function's copy of the catalog is out of date by now
	l, err = c.Renew(t.Context(), l.ID, 0)
	require.NoError(t, err)
	require.True(t, l.Draining)
	require.LessOrEqual(t, l.Left, time.Minute)
}
