package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"crawl.example.com/proxyfleet/pkg/testclock"
)

// leases is a lease function with a list of proxies, given out in turn.
type leases struct {
	mu       sync.Mutex
	proxies  []string // URLs
	next     int
	requests []Request
	released map[string]Outcome
	targets  map[string]string
	renewed  int
	ttl      time.Duration
	now      func() time.Time
	refusal  error

	refuseAfter int // leases; 0: never
	draining    bool
}

func (l *leases) Acquire(_ context.Context, r Request) (Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusal != nil {
		return Lease{}, l.refusal
	}
	if l.refuseAfter > 0 && l.next >= l.refuseAfter {
		return Lease{}, &Unavailable{Reason: "NO_CAPACITY"}
	}
	l.requests = append(l.requests, r)
	i := l.next % len(l.proxies)
	l.next++
	return Lease{ID: fmt.Sprintf("lease-%d", l.next), Proxy: fmt.Sprintf("proxy-%d", i), URL: l.proxies[i], ExpireTime: l.now().Add(l.ttl)}, nil
}

func (l *leases) Renew(context.Context, string) (Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed++
	return Lease{ExpireTime: l.now().Add(l.ttl), Draining: l.draining}, nil
}

func (l *leases) Release(_ context.Context, id string, o Outcome, target string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, twice := l.released[id]; twice {
		return errors.New("released twice")
	}
	l.released[id], l.targets[id] = o, target
	return nil
}

func (l *leases) outcomes() map[string]Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]Outcome{}
	for id, o := range l.released {
		out[id] = o
	}
	return out
}

// rig is a gateway on a real socket, with a crawler in front of it.
type rig struct {
	*leases
	clock   *testclock.Clock
	gateway *Gateway
	url     *url.URL
	logged  *lines
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T, rotation Rotation, proxies ...string) *rig {
	t.Helper()
	c := testclock.At(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	l := &leases{proxies: proxies, released: map[string]Outcome{}, targets: map[string]string{}, ttl: 5 * time.Minute, now: c.Now}
	logged := &lines{}
	g := New(l, Config{Rotation: rotation, DialTimeout: 2 * time.Second, Now: c.Now, Log: slog.New(slog.NewTextHandler(logged, nil))})
	s := httptest.NewServer(g)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	t.Cleanup(func() {
		g.Close(context.Background())
		s.Close()
	})
	return &rig{leases: l, clock: c, gateway: g, url: u, logged: logged}
}

// crawler fetches through the gateway, under a user name of its own.
func (r *rig) crawler(t *testing.T, origin *httptest.Server, user string) *http.Client {
	t.Helper()
	u := *r.url
	if user != "" {
		u.User = url.UserPassword(user, "x")
	}
	tr := &http.Transport{Proxy: http.ProxyURL(&u), DisableKeepAlives: true}
	if origin.TLS != nil {
		tr.TLSClientConfig = origin.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func (r *rig) get(t *testing.T, origin *httptest.Server, user string) (int, string) {
	t.Helper()
	resp, err := r.crawler(t, origin, user).Get(origin.URL + "/page")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// settled waits until n leases were given back.
func (r *rig) settled(t *testing.T, n int) map[string]Outcome {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.outcomes()) == n }, 10*time.Second, 5*time.Millisecond)
	return r.outcomes()
}

// goodProxy is a real CONNECT and forward proxy that wants a password.
func goodProxy(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		if user != "crawler" || password != "p@ss/word" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method == http.MethodConnect {
			upstream, err := net.Dial("tcp", r.Host)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer upstream.Close()
			_ = splice(w, upstream)
			return
		}
		r.RequestURI = ""
		r.Header.Del("Proxy-Authorization")
		tr := &http.Transport{DisableKeepAlives: true}
		resp, err := tr.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(s.Close)
	return "http://crawler:p%40ss%2Fword@" + s.Listener.Addr().String()
}

// proxyAnswering is a proxy that answers every request with the given bytes; "" closes at once.
func proxyAnswering(t *testing.T, answer string) string {
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
			wg.Go(func() {
				defer c.Close()
				_, _ = http.ReadRequest(bufio.NewReader(c))
				_, _ = io.WriteString(c, answer)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

// deadProxy is an address where nothing listens.
func deadProxy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

func originAnswering(t *testing.T, secure bool, status int) *httptest.Server {
	t.Helper()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		fmt.Fprintf(w, "origin saw %s %s %q", r.Method, r.URL.Path, body)
	})
	s := httptest.NewUnstartedServer(h)
	if secure {
		s.TLS = &tls.Config{} //nolint:gosec // defaults of httptest
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTunnelsAndPlainRequestsGoThroughALease(t *testing.T) {
	for _, secure := range []bool{true, false} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			r := newRig(t, PerRequest(), goodProxy(t))
			status, body := r.get(t, originAnswering(t, secure, http.StatusOK), "")
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, body, "origin saw GET /page")
			require.Equal(t, map[string]Outcome{"lease-1": OK}, r.settled(t, 1))
			require.Equal(t, "127.0.0.1", r.requests[0].Target)
		})
	}
}

func TestAProxyThatFailsBeforeItAnswersIsReplaced(t *testing.T) {
	for name, bad := range map[string]func(*testing.T) string{
		"dead":     deadProxy,
		"hangs up": func(t *testing.T) string { return proxyAnswering(t, "") },
		"refuses": func(t *testing.T) string {
			return proxyAnswering(t, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		},
		"talks nonsense": func(t *testing.T) string { return proxyAnswering(t, "SSH-2.0-OpenSSH\r\n\r\n") },
	} {
		for _, secure := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s tls=%v", name, secure), func(t *testing.T) {
				r := newRig(t, PerRequest(), bad(t), goodProxy(t))
				status, body := r.get(t, originAnswering(t, secure, http.StatusOK), "")
				require.Equal(t, http.StatusOK, status, body)
				require.Equal(t, map[string]Outcome{"lease-1": Failed, "lease-2": OK}, r.settled(t, 2))
				require.Equal(t, []string{"proxy-0"}, r.requests[1].Exclude)
			})
		}
	}
}

func TestABodyIsSentAgainToTheNextProxy(t *testing.T) {
	r := newRig(t, PerRequest(), deadProxy(t), goodProxy(t))
	origin := originAnswering(t, false, http.StatusOK)
	resp, err := r.crawler(t, origin, "").Post(origin.URL+"/form", "text/plain", strings.NewReader("a=1"))
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `POST /form "a=1"`)
}

func TestAttemptsAreBounded(t *testing.T) {
	r := newRig(t, PerRequest(), deadProxy(t))
	status, body := r.get(t, originAnswering(t, false, http.StatusOK), "")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, body, "no proxy could do it")
	r.settled(t, 3)
}

func TestSilentProxyIsATimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = dialThrough(t.Context(), "http://"+l.Addr().String(), "example.com:443", 50*time.Millisecond)
	require.Error(t, err)
	require.Equal(t, Timeout, failure(err))
}

func TestBansAreReportedWithTheirTarget(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests} {
		r := newRig(t, Every(time.Hour), goodProxy(t))
		got, _ := r.get(t, originAnswering(t, false, status), "")
		require.Equal(t, status, got, "the crawler sees what the target said")
		require.Equal(t, map[string]Outcome{"lease-1": Banned}, r.settled(t, 1))
		require.Equal(t, "127.0.0.1", r.targets["lease-1"])
		r.get(t, originAnswering(t, false, http.StatusOK), "")
		require.Len(t, r.requests, 2, "the next request rotates")
	}
}

func TestRotation(t *testing.T) {
	t.Run("every request", func(t *testing.T) {
		r := newRig(t, PerRequest(), goodProxy(t))
		origin := originAnswering(t, true, http.StatusOK)
		for range 3 {
			r.get(t, origin, "")
		}
		require.Len(t, r.settled(t, 3), 3)
	})
	t.Run("sticky by crawler and target", func(t *testing.T) {
		r := newRig(t, Sticky(), goodProxy(t))
		origin := originAnswering(t, true, http.StatusOK)
		for range 3 {
			r.get(t, origin, "anna")
		}
		r.get(t, origin, "bert")
		require.Len(t, r.requests, 2)
		require.NotEqual(t, r.requests[0].StickyKey, r.requests[1].StickyKey)
		require.Empty(t, r.outcomes(), "leases stay while they may be used again")
	})
	t.Run("by time", func(t *testing.T) {
		r := newRig(t, Every(30*time.Second), goodProxy(t))
		origin := originAnswering(t, true, http.StatusOK)
		r.get(t, origin, "")
		r.clock.Advance(29 * time.Second)
		r.get(t, origin, "")
		require.Len(t, r.requests, 1)
		r.clock.Advance(time.Second)
		r.get(t, origin, "")
		require.Len(t, r.requests, 2)
		require.Equal(t, map[string]Outcome{"lease-1": OK}, r.settled(t, 1))
	})
}

func TestLeasesInUseAreRenewedAndIdleOnesGoBack(t *testing.T) {
	r := newRig(t, Sticky(), goodProxy(t))
	h, err := r.gateway.pool.take(t.Context(), "anna", "example.com", nil)
	require.NoError(t, err)
	r.clock.Advance(4*time.Minute + time.Second)
	r.gateway.pool.sweep(t.Context())
	require.Equal(t, 1, r.renewed)
	r.gateway.pool.sweep(t.Context())
	require.Equal(t, 1, r.renewed, "renewed when needed, not more often")
	r.gateway.pool.give(h, OK, "example.com")
	r.clock.Advance(idleLimit)
	r.gateway.pool.sweep(t.Context())
	r.settled(t, 1)
}

func TestCloseGivesEverythingBackOnce(t *testing.T) {
	r := newRig(t, Sticky(), goodProxy(t))
	h, err := r.gateway.pool.take(t.Context(), "anna", "example.com", nil)
	require.NoError(t, err)
	r.gateway.Close(t.Context())
	r.gateway.pool.give(h, Failed, "example.com")
	require.Equal(t, map[string]Outcome{"lease-1": OK}, r.outcomes())
}

func TestRefusalIsPassedOnWithItsReason(t *testing.T) {
	r := newRig(t, PerRequest(), goodProxy(t))
	r.refusal = &Unavailable{Reason: "NO_CAPACITY", RetryAfter: 1500 * time.Millisecond}
	origin := originAnswering(t, false, http.StatusOK)
	resp, err := r.crawler(t, origin, "").Get(origin.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	assert.Equal(t, "2", resp.Header.Get("Retry-After"))
	assert.Contains(t, string(body), "NO_CAPACITY")
}

func TestADirectVisitIsToldWhatThisIs(t *testing.T) {
	r := newRig(t, PerRequest(), goodProxy(t))
	resp, err := http.Get(r.url.String())
	require.NoError(t, err)
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, string(body), "HTTPS_PROXY")
	http.DefaultClient.CloseIdleConnections()
}

func TestFlagsSayWhatTheyMustBe(t *testing.T) {
	_, err := ParseRotation("sometimes")
	require.ErrorContains(t, err, `"sometimes": must be request, sticky or a duration`)
	_, err = ParseRotation("10ms")
	require.Error(t, err)
	for s, want := range map[string]Rotation{"request": PerRequest(), "sticky": Sticky(), "30s": Every(30 * time.Second)} {
		got, err := ParseRotation(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = ParseStatuses("403,many")
	require.ErrorContains(t, err, "must be status codes")
	statuses, err := ParseStatuses("403, 429")
	require.NoError(t, err)
	require.Equal(t, []int{403, 429}, statuses)
}
