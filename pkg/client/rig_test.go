package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/lease"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the real lease function over a memory store, with real proxies behind it.
type rig struct {
	t       *testing.T
	store   *memory.Store
	api     http.Handler
	url     string
	proxies map[string]*proxy

	ahead   atomic.Int64 // how far the server's clock is ahead of ours
	onCall  atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler)]
	calls   sync.Map // path -> *atomic.Int64, without lease ids
	version time.Time
}

// newRig starts a proxy per name. Each has capacity leases.
func newRig(t *testing.T, capacity int32, names ...string) *rig {
	t.Helper()
	r := &rig{t: t, proxies: map[string]*proxy{}}
	r.store = memory.New(r.now)
	entries := map[string]fleet.Entry{}
	for _, name := range names {
		p := newProxy(t, name)
		r.proxies[name] = p
		entries[name] = fleet.Entry{
			Host: "127.0.0.1", Port: p.port, Incarnation: 1, Mode: fleet.Managed, Credentials: &fleet.SecretRef{Name: "auth"},
			MaxLeases: capacity, Capacity: capacity, Ceiling: capacity, Verdict: fleet.Verdict{Healthy: true, Incarnation: 1},
		}
	}
	version, err := r.store.WriteShard(context.Background(), store.Shard{}, entries, nil)
	require.NoError(t, err)
	r.version = version
	service := lease.New(lease.Deps{Store: r.store, Secrets: vault{}, Now: r.now, Log: slog.New(slog.DiscardHandler)})
	r.api = (&lease.Server{Service: service, Version: "test"}).Handler()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// The credentials of all proxies: what a URL needs encoding for.
const user, password = "crawler", "p:@/?#%é \""

type vault struct{}

func (vault) Resolve(context.Context, string, string) (string, error) {
	return user + ":" + password, nil
}

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

// ServeHTTP is the lease function, with whatever the test puts before it.
func (r *rig) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	verb := req.URL.Path
	for i := len(verb) - 1; i > 0 && verb[i] != '/'; i-- {
		if verb[i] == ':' {
			verb = verb[i:]
			break
		}
	}
	n, _ := r.calls.LoadOrStore(verb, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	w.Header().Set("Date", r.now().UTC().Format(http.TimeFormat))
	if f := r.onCall.Load(); f != nil {
		(*f)(w, req, r.api)
		return
	}
	r.api.ServeHTTP(w, req)
}

func (r *rig) before(f func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	r.onCall.Store(&f)
}

func (r *rig) count(verb string) int {
	n, ok := r.calls.Load(verb)
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int64).Load())
}

func (r *rig) client() *Client {
	r.t.Helper()
	c, err := New(Config{URL: r.url})
	require.NoError(r.t, err)
	c.pause = time.Millisecond
	r.t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// change changes an entry of the catalog as reconcile would.
func (r *rig) change(name string, f func(*fleet.Entry)) {
	r.t.Helper()
	shards, err := r.store.ReadCatalog(context.Background())
	require.NoError(r.t, err)
	e := shards[0].Entries[name]
	f(&e)
	_, err = r.store.WriteShard(context.Background(), shards[0], map[string]fleet.Entry{name: e}, nil)
	require.NoError(r.t, err)
}

func (r *rig) live() int {
	r.t.Helper()
	n, err := r.store.CountSlots(context.Background(), r.now())
	require.NoError(r.t, err)
	return int(n)
}

// eventually polls: what happens behind a caller's back takes a moment.
func (r *rig) eventually(what string, f func() bool) {
	r.t.Helper()
	require.Eventually(r.t, f, 10*time.Second, 2*time.Millisecond, what)
}

// proxy is a real HTTP proxy that asks for credentials. Fail, when set, serves instead.
type proxy struct {
	name    string
	port    int32
	used    atomic.Int64
	refused atomic.Int64 // for want of credentials
	fail    atomic.Pointer[http.HandlerFunc]
}

func newProxy(t *testing.T, name string) *proxy {
	t.Helper()
	p := &proxy{name: name}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	require.NoError(t, err)
	p.port = int32(n)
	return p
}

func (p *proxy) failWith(f http.HandlerFunc) { p.fail.Store(&f) }

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	if r.Header.Get("Proxy-Authorization") != want {
		p.refused.Add(1)
		http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		return
	}
	p.used.Add(1)
	if f := p.fail.Load(); f != nil {
		(*f)(w, r)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Header.Del("Proxy-Authorization")
	out.Header.Set("X-Proxy", p.name)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	w.(http.Flusher).Flush()
	_, _ = io.Copy(w, resp.Body)
}

func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer target.Close()
	client, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, target}, {target, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// slam ends a connection without an answer.
func slam(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}
