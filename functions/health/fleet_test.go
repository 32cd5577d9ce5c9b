package health

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// plane is the health function over a memory store, with a fleet of real proxies and a TLS target.
type plane struct {
	t       testing.TB
	store   *counted
	app     *app.App
	handler http.Handler
	target  string
	targets []health.Target
	entries map[string]fleet.Entry
}

// counted counts what is written, and cannot write documents named "unrecordable".
type counted struct {
	*memory.Store
	writes atomic.Int64
}

func (c *counted) WriteStatus(ctx context.Context, p fleet.Proxy, f store.StatusFields) (fleet.Proxy, error) {
	if p.Name == "unrecordable" && f == store.HealthFields {
		return p, errors.New("outage")
	}
	c.writes.Add(1)
	return c.Store.WriteStatus(ctx, p, f)
}

func (c *counted) SetVerdict(ctx context.Context, shard int, name string, v fleet.Verdict) error {
	c.writes.Add(1)
	return c.Store.SetVerdict(ctx, shard, name, v)
}

func newPlane(t testing.TB) *plane {
	t.Helper()
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	target.Config.ErrorLog = log.New(io.Discard, "", 0)
	target.StartTLS()
	t.Cleanup(target.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: target.Certificate().Raw}), 0o600))

	p := &plane{t: t, store: &counted{Store: memory.New(time.Now)}, target: target.URL, entries: map[string]fleet.Entry{}}
	p.app = app.New(app.Config{ExtraCAFile: ca}, p.store, nil, slog.New(slog.DiscardHandler))
	var err error
	p.handler, err = Open(t.Context(), p.app)
	require.NoError(t, err)
	return p
}

// add makes the document of an External proxy, as a run would have left it.
func (p *plane) add(name, address string) {
	host, port, err := net.SplitHostPort(address)
	require.NoError(p.t, err)
	number, err := net.LookupPort("tcp", port)
	require.NoError(p.t, err)
	d, err := p.store.CreateProxy(p.t.Context(), name, store.Edit{Spec: map[string]any{
		"mode":        "External",
		"endpoint":    map[string]any{"host": host, "port": int64(number)},
		"healthCheck": map[string]any{"url": p.target, "expectedStatus": int64(204), "unhealthyThreshold": int64(1), "timeoutSeconds": int64(10)},
	}})
	require.NoError(p.t, err)
	d.Status.UID = "uid-" + name
	d.Status.Endpoint = &fleet.StatusEndpoint{Host: host, Port: int32(number)}
	_, err = p.store.Store.WriteStatus(p.t.Context(), d, store.AllFields)
	require.NoError(p.t, err)
	p.targets = append(p.targets, health.Target{Name: name})
	p.entries[name] = fleet.Entry{Host: host, Port: int32(number)}
}

// publishCatalog writes the entries of all that were added.
func (p *plane) publishCatalog() {
	_, err := p.store.WriteShard(p.t.Context(), store.Shard{}, p.entries, nil)
	require.NoError(p.t, err)
}

// healthy counts documents and entries that are so.
func (p *plane) healthy() (documents, entries int) {
	all, err := p.store.ListProxies(p.t.Context())
	require.NoError(p.t, err)
	for _, d := range all {
		if d.Status.Health.Healthy {
			documents++
		}
	}
	shards, err := p.store.ReadCatalog(p.t.Context())
	require.NoError(p.t, err)
	for _, e := range shards[0].Entries {
		if e.Verdict.Healthy {
			entries++
		}
	}
	return documents, entries
}

// serveTCP serves each connection with f until the test ends, and returns the address.
func serveTCP(t testing.TB, f func(net.Conn)) string {
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
			wg.Go(func() { defer c.Close(); f(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// connectProxy is a CONNECT proxy.
func connectProxy(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	up, err := net.Dial("tcp", r.Host)
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(up, c); _ = up.Close() })
	_, _ = io.Copy(c, up)
	_ = c.Close()
	wg.Wait()
}

// blackHole takes connections and stays silent.
func blackHole(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
