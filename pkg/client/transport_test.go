package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/client/clienttest"
	"crawl.example.com/proxyfleet/pkg/fleet"
)

// crawl is an http.Client above a Transport, and what it fetches.
type crawl struct {
	*clienttest.Plane
	t         *testing.T
	transport *Transport
	client    *http.Client
	site      *httptest.Server
}

func newCrawl(t *testing.T, r *clienttest.Plane, o Options, site http.HandlerFunc) *crawl {
	t.Helper()
	if site == nil {
		site = func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "page by "+r.Header.Get("X-Proxy")) }
	}
	c := &crawl{Plane: r, t: t, site: httptest.NewServer(site)}
	t.Cleanup(c.site.Close)
	c.transport = NewTransport(newClient(t, r), o)
	c.client = &http.Client{Transport: c.transport}
	t.Cleanup(func() { require.NoError(t, c.transport.Close(context.WithoutCancel(t.Context()))) })
	return c
}

// get fetches the site's page under a host of its own, which the proxies need not resolve.
func (c *crawl) get(ctx context.Context) (int, string, error) {
	return c.do(ctx, http.MethodGet, c.site.URL, nil)
}

func (c *crawl) do(ctx context.Context, method, target string, body io.Reader) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	require.NoError(c.t, err)
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func (c *crawl) mustGet() string {
	c.t.Helper()
	status, body, err := c.get(c.t.Context())
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, status)
	return body
}

func TestRequestsToOneHostShareALeaseAndItGoesBackAtTheEnd(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a", "b", "c")
	c := newCrawl(t, r, Options{}, nil)
	first := c.mustGet()
	for range 10 {
		require.Equal(t, first, c.mustGet())
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { c.mustGet() })
	}
	wg.Wait()
	require.Equal(t, 1, r.Calls("/v1/leases"))
	require.Equal(t, 1, r.Live())
	require.NoError(t, c.transport.Close(t.Context()))
	require.Zero(t, r.Live())
	_, _, err := c.get(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}

func TestAHundredAtOnceTakeOneLease(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 100, "a")
	c := newCrawl(t, r, Options{}, nil)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { c.mustGet() })
	}
	wg.Wait()
	require.Equal(t, 1, r.Calls("/v1/leases"))
}

func TestTwoHostsHaveLeasesOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	c := newCrawl(t, r, Options{}, nil)
	c.mustGet()
	u, err := url.Parse(c.site.URL)
	require.NoError(t, err)
	status, _, err := c.do(t.Context(), http.MethodGet, "http://localhost:"+u.Port(), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 2, r.Live())
}

func TestAProxyPerRequest(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 50, "a", "b", "c", "d")
	c := newCrawl(t, r, Options{Uses: 1}, nil)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { c.mustGet() })
	}
	wg.Wait()
	require.Equal(t, 40, r.Calls("/v1/leases"))
	for name, p := range r.Proxies {
		assert.Positive(t, p.Used.Load(), name)
	}
	r.Eventually("all leases are given back", func() bool { return r.Live() == 0 })
}

func TestALeaseIsExchangedAfterSoManyUses(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 50, "a", "b")
	c := newCrawl(t, r, Options{Uses: 5}, nil)
	for range 20 {
		c.mustGet()
	}
	require.Equal(t, 4, r.Calls("/v1/leases"))
}

func TestAFailingProxyIsLeftReportedAndNobodyNotices(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		fail http.HandlerFunc
	}{
		{"it hangs up", clienttest.Slam},
		{"it does not take its credentials", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := clienttest.New(t, 5, "a", "b")
			r.Proxies["a"].FailWith(row.fail)
			c := newCrawl(t, r, Options{Uses: 1}, nil)
			for range 30 {
				require.Equal(t, "page by b", c.mustGet())
			}
			require.Positive(t, r.Proxies["a"].Used.Load())
			r.Eventually("all leases are given back", func() bool { return r.Live() == 0 })
			require.NoError(t, c.transport.Close(t.Context()))
			require.Len(t, r.Reports("a"), int(r.Proxies["a"].Used.Load()))
			for _, body := range r.Reports("a") {
				require.JSONEq(t, `{"outcome":"error","target":"127.0.0.1"}`, body)
			}
			for _, body := range r.Reports("b") {
				require.JSONEq(t, `{"outcome":"ok"}`, body)
			}
		})
	}
}

func TestABanIsReportedForItsHostAndAnotherProxyTried(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests} {
		r := clienttest.New(t, 5, "a", "b")
		c := newCrawl(t, r, Options{Uses: 1}, func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("X-Proxy") == "a" {
				w.WriteHeader(status)
			}
			_, _ = fmt.Fprint(w, "page by "+req.Header.Get("X-Proxy"))
		})
		for range 30 {
			require.Equal(t, "page by b", c.mustGet())
			r.Advance(3 * time.Second) // the function reads its catalog anew
		}
		r.Eventually("all leases are given back", func() bool { return r.Live() == 0 })
		require.NoError(t, c.transport.Close(t.Context()))
		require.GreaterOrEqual(t, len(r.Reports("a")), 3)
		require.Less(t, len(r.Reports("a")), 6, "three bans, and the proxy is kept from that host")
		require.JSONEq(t, `{"outcome":"banned","target":"127.0.0.1"}`, r.Reports("a")[0])
	}
}

func TestWhenNoOtherProxyIsToBeHadTheLastAnswerIsTheAnswer(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	c := newCrawl(t, r, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, "go away")
	})
	status, body, err := c.get(t.Context())
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, "go away", body)
	r.Eventually("the lease is given back", func() bool { return r.Live() == 0 })
	r.Proxies["a"].FailWith(clienttest.Slam)
	_, _, err = c.get(t.Context())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "FILTER_EMPTY", "what went wrong, not that there is no other")
}

func TestNoProxyAtAllIsTheFunctionsRefusal(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	c := newCrawl(t, r, Options{Request: Request{Labels: map[string]string{"pool": "none"}}}, nil)
	_, _, err := c.get(t.Context())
	var refused *Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "FILTER_EMPTY", refused.Reason)
	body := &closing{Reader: strings.NewReader("x")}
	_, _, err = c.do(t.Context(), http.MethodPost, c.site.URL, body)
	require.Error(t, err)
	require.True(t, body.closed, "a RoundTripper closes the body whatever happens")
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestWhatMayNotHappenTwiceIsSentOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		method string
		body   func() io.Reader
		key    bool
		served int64 // how many proxies see it
	}{
		{"a GET goes on", http.MethodGet, func() io.Reader { return nil }, false, 3},
		{"a POST does not", http.MethodPost, func() io.Reader { return strings.NewReader("x") }, false, 1},
		{"a POST with a key goes on", http.MethodPost, func() io.Reader { return strings.NewReader("x") }, true, 3},
		{"a body that can be read once does not", http.MethodPost, func() io.Reader { return io.MultiReader(strings.NewReader("x")) }, true, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := clienttest.New(t, 5, "a", "b", "c", "d")
			var bodies sync.Map
			for name, p := range r.Proxies {
				p.FailWith(func(w http.ResponseWriter, req *http.Request) {
					data, _ := io.ReadAll(req.Body)
					bodies.Store(name, string(data))
					w.WriteHeader(http.StatusForbidden)
				})
			}
			c := newCrawl(t, r, Options{}, nil)
			req, err := http.NewRequestWithContext(t.Context(), row.method, c.site.URL, row.body())
			require.NoError(t, err)
			if row.key {
				req.Header.Set("Idempotency-Key", "1")
			}
			resp, err := c.client.Do(req)
			require.NoError(t, err)
			_ = resp.Body.Close()
			served := int64(0)
			for _, p := range r.Proxies {
				served += p.Used.Load()
			}
			require.Equal(t, row.served, served)
			if row.method == http.MethodPost {
				bodies.Range(func(_, body any) bool { return assert.Equal(t, "x", body) })
			}
		})
	}
}

func TestWhatNeverReachedAProxyMayBeSentAgain(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a", "b")
	r.Change("a", func(e *fleet.Entry) { e.Port = 1 }) // nobody listens
	c := newCrawl(t, r, Options{Uses: 1}, func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) })
	for range 20 {
		status, body, err := c.do(t.Context(), http.MethodPost, c.site.URL, strings.NewReader("order"))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "order", body)
	}
	require.Greater(t, r.Calls("/v1/leases"), 20, "a was tried")
}

func TestAnAnswerThatBreaksOffCostsTheProxyItsLease(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	r.Proxies["a"].FailWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = fmt.Fprint(w, "a part")
	})
	c := newCrawl(t, r, Options{}, nil)
	_, body, err := c.get(t.Context())
	require.Error(t, err)
	require.Equal(t, "a part", body)
	require.NoError(t, c.transport.Close(t.Context()))
	require.JSONEq(t, `{"outcome":"error","target":"127.0.0.1"}`, r.Reports("a")[0])
}

func TestASilentProxyIsATimeoutAndACallerWhoLeavesIsNone(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	seen := make(chan struct{}, 10)
	r.Proxies["a"].FailWith(func(_ http.ResponseWriter, req *http.Request) {
		seen <- struct{}{}
		<-req.Context().Done()
	})
	c := newCrawl(t, r, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-seen
		cancel()
	}()
	_, _, err := c.get(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, r.Live(), "the lease is as good as before")
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = c.get(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, c.transport.Close(t.Context()))
	require.Equal(t, []string{`{"outcome":"timeout","target":"127.0.0.1"}`}, r.Reports("a"))
	require.Equal(t, 1, r.Calls("/v1/leases"), "nothing is taken for a caller who left")
}

func TestHTTPSGoesThroughATunnelWithCredentials(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a", "b")
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		assert.Empty(t, req.Header.Get("Proxy-Authorization"), "it ends at the proxy")
		_, _ = fmt.Fprint(w, "secret page")
	}))
	t.Cleanup(site.Close)
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	r.Proxies["a"].FailWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	c := newCrawl(t, r, Options{Uses: 1, Base: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}, nil)
	for range 10 {
		status, body, err := c.do(t.Context(), http.MethodGet, site.URL, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "secret page", body)
	}
	require.Positive(t, r.Proxies["b"].Used.Load())
	for _, p := range r.Proxies {
		require.Zero(t, p.Refused.Load())
	}
}

func TestAnIdleLeaseGoesBack(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	c := newCrawl(t, r, Options{Idle: 20 * time.Millisecond}, nil)
	c.mustGet()
	r.Eventually("the lease is given back", func() bool { return r.Live() == 0 })
	c.mustGet()
	require.Equal(t, 2, r.Calls("/v1/leases"))
}

func TestAProxyOnItsWayOutGetsNoNewRequest(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	c := newCrawl(t, r, Options{}, nil)
	c.mustGet()
	c.transport.mu.Lock()
	for s := range c.transport.all {
		s.held.mu.Lock()
		s.held.lease.Draining = true // as a renewal would find
		s.held.mu.Unlock()
	}
	c.transport.mu.Unlock()
	c.mustGet()
	require.Equal(t, 2, r.Calls("/v1/leases"))
	r.Eventually("the first is given back", func() bool { return r.Live() == 1 })
}

func TestADownloadKeepsItsLeaseWhileOthersMoveOn(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	more := make(chan struct{})
	c := newCrawl(t, r, Options{Uses: 1}, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-more
		_, _ = fmt.Fprint(w, "the end")
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.site.URL, nil)
	require.NoError(t, err)
	resp, err := c.client.Do(req)
	require.NoError(t, err)
	require.Equal(t, 1, r.Live())
	close(more)
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "the end", string(data))
	require.Equal(t, 1, r.Live(), "until the body is closed")
	require.NoError(t, resp.Body.Close())
	require.NoError(t, resp.Body.Close(), "twice is once")
	r.Eventually("it is given back", func() bool { return r.Live() == 0 })
}

func TestEachUserOfASharedLeaseCounts(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	c := newCrawl(t, r, Options{Uses: 2}, nil)
	var open []*http.Response
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.site.URL, nil)
		require.NoError(t, err)
		resp, err := c.client.Do(req)
		require.NoError(t, err)
		open = append(open, resp)
	}
	require.Equal(t, 1, r.Calls("/v1/leases"))
	for range 2 {
		require.NoError(t, open[0].Body.Close())
	}
	require.Never(t, func() bool { return r.Live() == 0 }, 50*time.Millisecond, 5*time.Millisecond, "the other still uses it")
	require.NoError(t, open[1].Body.Close())
	r.Eventually("it is given back", func() bool { return r.Live() == 0 })
}

func TestCloseTakesLeasesFromRequestsUnderWay(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	c := newCrawl(t, r, Options{}, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.site.URL, nil)
	require.NoError(t, err)
	resp, err := c.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, c.transport.Close(t.Context()))
	require.Zero(t, r.Live())
	require.NoError(t, resp.Body.Close())
}

func TestWhoWaitsForALeaseGetsItThoughTheFirstLeft(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 5, "a")
	arrived, goOn := make(chan struct{}), make(chan struct{})
	r.Before(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.URL.Path == "/v1/leases" {
			arrived <- struct{}{}
			<-goOn
		}
		next.ServeHTTP(w, req)
	})
	c := newCrawl(t, r, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := c.get(ctx)
		assert.ErrorIs(t, err, context.Canceled)
		close(goOn)
	})
	<-arrived
	wg.Go(func() { c.mustGet() })
	cancel()
	wg.Wait()
	require.Equal(t, 1, r.Calls("/v1/leases"))
}

func TestASharedLeaseIsRenewedWhoeverTookIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := newDirect(t, 0)
		transport := NewTransport(c, Options{Idle: 2 * time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		_, err := transport.borrow(ctx, "shop.example", nil)
		require.NoError(t, err)
		cancel()
		time.Sleep(time.Hour)
		require.Equal(t, 1, d.live())
		require.NoError(t, transport.Close(t.Context()))
		require.Zero(t, d.live())
	})
}

func TestManyHostsManyFaultsAndNoLeaseIsLeftBehind(t *testing.T) {
	t.Parallel()
	r := clienttest.New(t, 20, "a", "b", "c", "d", "e")
	r.Proxies["a"].FailWith(clienttest.Slam)
	r.Proxies["b"].FailWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	c := newCrawl(t, r, Options{Uses: 7, Idle: 5 * time.Millisecond}, nil)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 30 {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if (i+j)%7 == 0 {
					cancel() // leaves before it begins
				}
				_, _, _ = c.get(ctx)
				cancel()
			}
		})
	}
	wg.Wait()
	c.transport.CloseIdleConnections()
	require.NoError(t, c.transport.Close(t.Context()))
	require.Zero(t, r.Live())
	require.Empty(t, c.transport.all)
	require.Empty(t, c.transport.hosts)
}
