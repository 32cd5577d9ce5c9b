// Package clienttest is the lease function over real proxies, for tests of what calls it.
package clienttest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/lease"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// The credentials of all proxies: what a URL needs encoding for.
const (
	User     = "crawler"
	Password = "p:@/?#%é \""
)

// Plane is the real lease function over a memory store, served at URL, with real proxies behind it.
type Plane struct {
	URL     string
	Store   *memory.Store
	Proxies map[string]*Proxy // by name

	t       *testing.T
	api     http.Handler
	ahead   atomic.Int64
	before  atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler)]
	mu      sync.Mutex
	calls   map[string]int
	reports map[string][]string
}

// New starts a plane with a ready proxy of the given capacity per name. All of it ends with the test.
func New(t *testing.T, capacity int32, names ...string) *Plane {
	t.Helper()
	p := &Plane{t: t, Proxies: map[string]*Proxy{}, calls: map[string]int{}, reports: map[string][]string{}}
	p.Store = memory.New(p.Now)
	entries := map[string]fleet.Entry{}
	for _, name := range names {
		proxy := newProxy(t, name)
		p.Proxies[name] = proxy
		entries[name] = fleet.Entry{
			Host: "127.0.0.1", Port: proxy.port, Incarnation: 1, Mode: fleet.Managed, Credentials: &fleet.SecretRef{Name: "auth"},
			MaxLeases: capacity, Capacity: capacity, Ceiling: capacity, Verdict: fleet.Verdict{Healthy: true, Incarnation: 1},
		}
	}
	_, err := p.Store.WriteShard(t.Context(), store.Shard{}, entries, nil)
	require.NoError(t, err)
	service := lease.New(lease.Deps{Store: p.Store, Secrets: vault{}, Now: p.Now, Log: slog.New(slog.DiscardHandler)})
	p.api = (&lease.Server{Service: service, Version: "test"}).Handler()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

type vault struct{}

func (vault) Resolve(context.Context, string, string) (string, error) {
	return User + ":" + Password, nil
}

// Now is the plane's clock.
func (p *Plane) Now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

// Advance sets the plane's clock forward, or back.
func (p *Plane) Advance(d time.Duration) { p.ahead.Add(int64(d)) }

// Before puts f in front of the lease function; next is that.
func (p *Plane) Before(f func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	p.before.Store(&f)
}

// ServeHTTP implements http.Handler: the lease function, and what the test puts in front of it.
func (p *Plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.note(r)
	w.Header().Set("Date", p.Now().UTC().Format(http.TimeFormat))
	if f := p.before.Load(); f != nil {
		(*f)(w, r, p.api)
		return
	}
	p.api.ServeHTTP(w, r)
}

func (p *Plane) note(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, verb, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/leases/"), ":")
	if !ok {
		p.calls[r.URL.Path]++
		return
	}
	p.calls[verb]++
	if verb == "release" || verb == "report" {
		name, _, _ := strings.Cut(id, ".")
		p.reports[name] = append(p.reports[name], rereadable(r))
	}
}

// Calls is how often a path such as "/v1/leases", or a verb of leases such as "renew", was called.
func (p *Plane) Calls(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[what]
}

// Reports are the bodies of the releases and reports on leases of one proxy, oldest first.
func (p *Plane) Reports(proxy string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.reports[proxy]...)
}

// Change changes a proxy's entry in the catalog, as reconcile would. The lease function sees it two
// seconds later at the earliest; Advance helps.
func (p *Plane) Change(name string, f func(*fleet.Entry)) {
	p.t.Helper()
	shards, err := p.Store.ReadCatalog(p.t.Context())
	require.NoError(p.t, err)
	e := shards[0].Entries[name]
	f(&e)
	_, err = p.Store.WriteShard(p.t.Context(), shards[0], map[string]fleet.Entry{name: e}, nil)
	require.NoError(p.t, err)
}

// Live is how many leases are live.
func (p *Plane) Live() int {
	p.t.Helper()
	n, err := p.Store.CountSlots(context.WithoutCancel(p.t.Context()), p.Now())
	require.NoError(p.t, err)
	return int(n)
}

// Eventually polls for ten seconds: what happens behind a caller's back takes a moment.
func (p *Plane) Eventually(what string, f func() bool) {
	p.t.Helper()
	require.Eventually(p.t, f, 10*time.Second, 2*time.Millisecond, what)
}
