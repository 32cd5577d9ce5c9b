package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/secret"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// world is a fleet of proxies on loopback, one target, and a Sweeper between them.
type world struct {
	t       *testing.T
	store   *flaky
	memory  *memory.Store // below store
	sweeper *Sweeper
	target  string
	visits  atomic.Int32 // to the target
	down    atomic.Bool  // the target answers 500
	log     *lines
	secrets map[string]string

	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldOn(t, nil)
	w.memory = memory.New(w.clock)
	w.store.Store = w.memory
	return w
}

// newWorldOn makes a world whose documents are kept in s.
func newWorldOn(t *testing.T, s store.Store) *world {
	t.Helper()
	w := &world{t: t, log: &lines{}, secrets: map[string]string{}, now: start}
	w.target = servePlain(t, func(rw http.ResponseWriter, r *http.Request) {
		w.visits.Add(1)
		if w.down.Load() {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		rw.Header().Set(fleet.DefaultExitAddressHeader, "192.0.2.7")
		rw.WriteHeader(http.StatusNoContent)
	}).URL
	w.store = &flaky{Store: s}
	w.restart()
	return w
}

// restart gives the world a fresh Sweeper, as a new process would.
func (w *world) restart() {
	w.sweeper = NewSweeper(Deps{
		Store: w.store, Secrets: w, Prober: &Prober{}, Metrics: NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.NewJSONHandler(w.log, nil)), Now: w.clock,
	})
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// at sets the clock.
func (w *world) at(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// Resolve implements secret.Resolver.
func (w *world) Resolve(_ context.Context, name, _ string) (string, error) {
	if name == "unreachable" {
		return "", errors.New("secret manager is out")
	}
	if s, ok := w.secrets[name]; ok {
		return s, nil
	}
	return "", fmt.Errorf("secret %s: %w", name, secret.ErrNotFound)
}

// backend is a proxy whose behaviour can change.
type backend struct {
	host   string
	port   int32
	asked  atomic.Int32
	behave atomic.Pointer[func(net.Conn)]
}

func (b *backend) be(f func(net.Conn)) { b.behave.Store(&f) }

// proxy starts a proxy for plain http.
func (w *world) proxy() *backend {
	b := &backend{}
	b.be(forward)
	b.host, b.port = listen(w.t, "127.0.0.1:0", func(c net.Conn) {
		b.asked.Add(1)
		(*b.behave.Load())(c)
	})
	return b
}

// broken is a behaviour that the target may have caused.
var broken = reply("HTTP/1.1 502 Bad Gateway\r\n\r\n")

// add makes the document of an External proxy behind b, as a run would have left it, and its entry.
func (w *world) add(name string, b *backend, change ...func(*fleet.Proxy, map[string]any)) {
	w.t.Helper()
	spec := map[string]any{
		"mode":        "External",
		"endpoint":    map[string]any{"host": b.host, "port": int64(b.port)},
		"healthCheck": map[string]any{"url": w.target, "expectedStatus": int64(204)},
	}
	status := fleet.Proxy{Status: fleet.Status{UID: "uid-" + name, Endpoint: &fleet.StatusEndpoint{Host: b.host, Port: b.port}}}
	for _, f := range change {
		f(&status, spec)
	}
	p, err := w.store.CreateProxy(w.t.Context(), name, store.Edit{Spec: spec})
	require.NoError(w.t, err)
	p.Status = status.Status
	_, err = w.store.Store.WriteStatus(w.t.Context(), p, store.AllFields)
	require.NoError(w.t, err)
	shards, err := w.store.ReadCatalog(w.t.Context())
	require.NoError(w.t, err)
	var shard store.Shard
	if len(shards) > 0 {
		shard = shards[0]
	}
	_, err = w.store.WriteShard(w.t.Context(), shard, map[string]fleet.Entry{name: {Host: b.host, Port: b.port}}, nil)
	require.NoError(w.t, err)
}

// managed makes add's document one of a VM of the given incarnation.
func managed(incarnation int64) func(*fleet.Proxy, map[string]any) {
	return func(p *fleet.Proxy, spec map[string]any) {
		spec["mode"], spec["provider"] = "Managed", "mock"
		spec["cloudInit"] = map[string]any{"inline": "#cloud-config"}
		endpoint := spec["endpoint"].(map[string]any)
		delete(endpoint, "host")
		p.Status.Incarnation = incarnation
		p.Status.Endpoint.Incarnation = incarnation
		p.Status.Instance = &fleet.Instance{Name: fmt.Sprint("vm-", incarnation), Incarnation: incarnation, Address: p.Status.Endpoint.Host}
	}
}

// sweep sends a message about External proxies for the given minute, at that minute.
func (w *world) sweep(minute int, names ...string) error {
	m := Message{Tick: at(minute)}
	for _, n := range names {
		m.Proxies = append(m.Proxies, Target{Name: n})
	}
	w.at(at(minute))
	return w.sweeper.Sweep(w.t.Context(), m)
}

func (w *world) get(name string) fleet.Proxy {
	w.t.Helper()
	p, err := w.store.Store.GetProxy(w.t.Context(), name)
	require.NoError(w.t, err)
	return p
}

func (w *world) entry(name string) fleet.Entry {
	w.t.Helper()
	shards, err := w.store.ReadCatalog(w.t.Context())
	require.NoError(w.t, err)
	require.NotEmpty(w.t, shards)
	return shards[0].Entries[name]
}

func (w *world) count(name, label string) float64 {
	w.t.Helper()
	m := w.sweeper.Metrics
	switch name {
	case "probes":
		return testutil.ToFloat64(m.probes.WithLabelValues(label))
	case "flips":
		return testutil.ToFloat64(m.flips.WithLabelValues(label))
	case "dropped":
		return testutil.ToFloat64(m.dropped.WithLabelValues(label))
	case "judgeDown":
		return testutil.ToFloat64(m.judgeDown)
	}
	w.t.Fatalf("no such metric: %s", name)
	return 0
}
