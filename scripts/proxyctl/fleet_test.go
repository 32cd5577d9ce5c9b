package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/lease"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// planted must appear nowhere but in the hands of the command that leases.
const planted = "planted-p@ss/word"

// function is a lease function on a real socket, with proxies that work behind it.
type function struct {
	t     *testing.T
	store *memory.Store
	url   string

	mu    sync.Mutex
	calls []string // path and body
	fail  func(path string) int
}

type vault struct{}

func (vault) Resolve(context.Context, string, string) (string, error) {
	return "crawler:" + planted, nil
}

// newFunction leases the given proxies; each takes two leases.
func newFunction(t *testing.T, auth lease.Authenticator, proxies ...string) *function {
	t.Helper()
	f := &function{t: t, store: memory.New(time.Now)}
	entries := map[string]fleet.Entry{}
	for i, address := range proxies {
		host, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		n, err := strconv.ParseInt(port, 10, 32)
		require.NoError(t, err)
		entries["proxy-"+strconv.Itoa(i)] = fleet.Entry{
			Host: host, Port: int32(n), Labels: map[string]string{"pool": "news"}, Mode: fleet.External, Credentials: &fleet.SecretRef{Name: "s"},
			MaxLeases: 2, Capacity: 2, Ceiling: 2, Verdict: fleet.Verdict{Healthy: true, Outcome: fleet.OutcomeOK},
		}
	}
	_, err := f.store.WriteShard(t.Context(), store.Shard{}, entries, nil)
	require.NoError(t, err)
	server := &lease.Server{Service: lease.New(lease.Deps{Store: f.store, Secrets: vault{}, Now: time.Now}), Auth: auth, Version: "test"}
	h := server.Handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if code := f.note(r.URL.Path, string(body)); code != 0 {
			w.WriteHeader(code)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

func (f *function) note(path, body string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, path+" "+body)
	if f.fail != nil {
		return f.fail(path)
	}
	return 0
}

// called returns the bodies of the calls whose path ends so.
func (f *function) called(suffix string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.calls {
		path, body, _ := strings.Cut(c, " ")
		if strings.HasSuffix(path, suffix) {
			out = append(out, body)
		}
	}
	return out
}

func (f *function) live() int64 {
	f.t.Helper()
	n, err := f.store.CountSlots(context.Background(), time.Now())
	require.NoError(f.t, err)
	return n
}

// goodProxy forwards plain requests of those who know its password, and says who it is.
func goodProxy(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
		if user, password, _ := check.BasicAuth(); user != "crawler" || password != planted {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		_, _ = io.WriteString(w, "through the proxy to "+r.URL.String()+"\n")
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// keyed lets in who knows the key.
type keyed string

func (k keyed) Authenticate(r *http.Request) (string, error) {
	if r.Header.Get("Authorization") != "Bearer "+string(k) {
		return "", &lease.Error{Reason: lease.Unauthenticated}
	}
	return "tester", nil
}
