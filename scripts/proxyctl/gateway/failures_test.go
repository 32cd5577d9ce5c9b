package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// countingProxy breaks the connection off when it has read a request, and counts them.
func countingProxy(t *testing.T, seen *atomic.Int32) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				seen.Add(1)
			}
			_ = c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

func TestOnlyWhatMayHappenTwiceIsSentTwice(t *testing.T) {
	for method, want := range map[string]int32{http.MethodGet: 3, http.MethodPut: 3, http.MethodPost: 1, http.MethodPatch: 1} {
		t.Run(method, func(t *testing.T) {
			var seen atomic.Int32
			r := newRig(t, PerRequest(), countingProxy(t, &seen))
			origin := originAnswering(t, false, http.StatusOK)
			req, err := http.NewRequestWithContext(t.Context(), method, origin.URL, strings.NewReader("a=1"))
			require.NoError(t, err)
			resp, err := r.crawler(t, origin, "").Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, http.StatusBadGateway, resp.StatusCode)
			require.Equal(t, want, seen.Load())
		})
	}
}

func TestHalfAnAnswerIsNoWholeAnswer(t *testing.T) {
	r := newRig(t, PerRequest(), proxyAnswering(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"))
	origin := originAnswering(t, false, http.StatusOK)
	resp, err := r.crawler(t, origin, "").Get(origin.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.Error(t, err, "got %q", body)
	require.Equal(t, map[string]Outcome{"lease-1": Failed}, r.settled(t, 1))
}

func TestHeadersForTheNextHopEndHere(t *testing.T) {
	headers := make(chan http.Header, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		c, _, err := http.NewResponseController(w).Hijack() // net/http would write a Connection of its own
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: X-Answer-Hop\r\nX-Answer-Hop: 1\r\nX-End: 1\r\n\r\n")
			_ = c.Close()
		}
	}))
	t.Cleanup(proxy.Close)
	r := newRig(t, PerRequest(), "http://crawler:secret@"+proxy.Listener.Addr().String())
	origin := originAnswering(t, false, http.StatusOK)
	c, err := net.Dial("tcp", r.url.Host)
	require.NoError(t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "GET %s/page HTTP/1.1\r\nHost: x\r\nConnection: X-Request-Hop, close\r\nX-Request-Hop: 1\r\nX-Request-End: 1\r\nProxy-Authorization: Basic YW5uYTo=\r\n\r\n", origin.URL)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	seen := <-headers
	require.Empty(t, seen.Get("X-Request-Hop"))
	require.Equal(t, "1", seen.Get("X-Request-End"))
	require.Equal(t, "Basic Y3Jhd2xlcjpzZWNyZXQ=", seen.Get("Proxy-Authorization"), "the proxy's credentials, not the crawler's")
	require.Empty(t, resp.Header.Get("X-Answer-Hop"))
	require.Equal(t, "1", resp.Header.Get("X-End"))
}

// slow takes its time to lease.
type slow struct{ *leases }

func (s slow) Acquire(ctx context.Context, r Request) (Lease, error) {
	time.Sleep(time.Second) // of a bubble
	return s.leases.Acquire(ctx, r)
}

func TestRequestsThatBeginAtOnceShareOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leases{proxies: []string{"http://192.0.2.1:3128"}, released: map[string]Outcome{}, targets: map[string]string{}, ttl: time.Minute, now: time.Now}
		g := New(slow{l}, Config{Rotation: Sticky()})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				h, err := g.pool.take(t.Context(), "anna", "example.com", nil)
				if err == nil {
					g.pool.give(h, OK, "example.com")
				}
			})
		}
		wg.Wait()
		require.Len(t, l.requests, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { _, _ = g.pool.take(t.Context(), "bert", "example.com", nil) }()
		synctest.Wait()
		_, err := g.pool.take(ctx, "bert", "example.com", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded, "whoever waits for a turn may leave")
		time.Sleep(time.Second)
		g.Close(t.Context())
	})
}

func TestWhatWentWrongFirstIsSaidWhenNoOtherLeaseIsLeft(t *testing.T) {
	r := newRig(t, PerRequest(), deadProxy(t))
	r.refuseAfter = 1
	status, body := r.get(t, originAnswering(t, false, http.StatusOK), "")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, body, "connection refused")
	require.Contains(t, body, "NO_CAPACITY")
}

func TestAProxyThatSwallowsConnectionsIsLeftInTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	r := newRig(t, PerRequest(), "http://"+l.Addr().String(), goodProxy(t))
	r.gateway.config.DialTimeout = 100 * time.Millisecond
	status, body := r.get(t, originAnswering(t, true, http.StatusOK), "")
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, map[string]Outcome{"lease-1": Timeout, "lease-2": OK}, r.settled(t, 2))
}

func TestTunnelsAreNotOpenedToWhatIsNoAddress(t *testing.T) {
	r := newRig(t, PerRequest(), goodProxy(t))
	c, err := net.Dial("tcp", r.url.Host)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "CONNECT nowhere HTTP/1.1\r\nHost: nowhere\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Empty(t, r.outcomes())
}

func TestCredentialsNeverReachTheCrawlerNorTheLog(t *testing.T) {
	dead, err := url.Parse(deadProxy(t))
	require.NoError(t, err)
	dead.User = url.UserPassword("crawler", "planted-secret")
	for _, secure := range []bool{true, false} {
		r := newRig(t, PerRequest(), dead.String())
		client := r.crawler(t, originAnswering(t, secure, http.StatusOK), "")
		status, body := r.get(t, originAnswering(t, false, http.StatusOK), "")
		client.CloseIdleConnections()
		require.Equal(t, http.StatusBadGateway, status)
		require.NotContains(t, body, "planted-secret")
		require.NotContains(t, r.logged.String(), "planted-secret")
		require.Contains(t, r.logged.String(), "proxy failed, trying another")
	}
}

func TestADrainingProxyGetsNoNewRequests(t *testing.T) {
	r := newRig(t, Sticky(), goodProxy(t))
	h, err := r.gateway.pool.take(t.Context(), "anna", "example.com", nil)
	require.NoError(t, err)
	r.draining = true
	r.clock.Advance(4*time.Minute + time.Second)
	r.gateway.pool.sweep(t.Context())
	next, err := r.gateway.pool.take(t.Context(), "anna", "example.com", nil)
	require.NoError(t, err)
	require.NotEqual(t, h.lease.ID, next.lease.ID)
	require.Empty(t, r.outcomes(), "whoever uses it may go on")
	r.gateway.pool.give(h, OK, "example.com")
	require.Equal(t, map[string]Outcome{h.lease.ID: OK}, r.settled(t, 1))
	r.gateway.pool.give(next, OK, "example.com")
}
