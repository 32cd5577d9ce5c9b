package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/reconcile"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

var start = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

// topic is a publisher that keeps what it gets.
type topic struct {
	mu       sync.Mutex
	messages []health.Message
	err      error
}

func (p *topic) Publish(_ context.Context, data []byte) func(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var m health.Message
	_ = json.Unmarshal(data, &m)
	p.messages = append(p.messages, m)
	return func(context.Context) error { return p.err }
}

// plane is the function over a memory store and a mock cloud.
type plane struct {
	*testing.T
	app   *app.App
	store *memory.Store
	topic *topic
	log   *bytes.Buffer
	now   time.Time
}

func newPlane(t *testing.T, providers string) *plane {
	t.Helper()
	p := &plane{T: t, topic: &topic{}, log: &bytes.Buffer{}, now: start}
	clock := func() time.Time { return p.now }
	p.store = memory.New(clock)
	file := filepath.Join(t.TempDir(), "providers.yaml")
	require.NoError(t, os.WriteFile(file, []byte(providers), 0o600))
	c := app.Config{ProjectID: "my-project", Database: "(default)", ProvidersConfig: file, RunTimeout: 30 * time.Second, LogLevel: "info"}
	p.app = app.New(c, p.store, nil, slog.New(slog.NewJSONHandler(p.log, nil)))
	p.app.Publisher, p.app.Now = p.topic, clock
	return p
}

func (p *plane) open() http.Handler {
	p.Helper()
	h, err := Open(p.Context(), p.app)
	require.NoError(p, err)
	return h
}

func post(h http.Handler, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// mockOnly is a cloud whose instances never come up, so that none listens.
const mockOnly = "- {name: main, type: mock, maxInstances: 2, mock: {provisionDelay: 1h}}\n"

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestACallRunsOnceAndAnswersItsSummary(t *testing.T) {
	t.Parallel()
	p := newPlane(t, mockOnly)
	h := p.open()
	_, err := p.store.CreateProxy(t.Context(), "a", store.Edit{Spec: map[string]any{"mode": "Managed", "provider": "main", "endpoint": map[string]any{"port": freePort(t)}}})
	require.NoError(t, err)
	w := post(h)
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
	var s struct {
		Proxies int            `json:"proxies"`
		Actions map[string]int `json:"actions"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	assert.Equal(t, 1, s.Proxies)
	assert.Equal(t, 1, s.Actions["create"])
	assert.Equal(t, 1, strings.Count(p.log.String(), "\n"), "one line a run: %s", p.log)
	var line struct {
		Message string            `json:"msg"`
		Summary reconcile.Summary `json:"summary"`
	}
	require.NoError(t, json.Unmarshal(p.log.Bytes(), &line))
	assert.Equal(t, "run", line.Message)
	assert.Equal(t, 1, line.Summary.Proxies)
}

func TestARunThatSomebodyElseIsAtIsNoFailure(t *testing.T) {
	t.Parallel()
	p := newPlane(t, mockOnly)
	h := p.open()
	_, err := p.store.LockRun(t.Context(), "somebody", start, time.Minute)
	require.NoError(t, err)
	w := post(h)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.JSONEq(t, `{"skipped":"locked"}`, w.Body.String())
}

func TestARunThatCannotReadAnswers500WithTheReason(t *testing.T) {
	t.Parallel()
	p := newPlane(t, mockOnly)
	h := &handler{log: p.app.Log, now: p.app.Now, run: func(context.Context, time.Time) (reconcile.Summary, error) {
		return reconcile.Summary{Proxies: 3}, errors.New("list proxies: the store is away")
	}}
	w := post(h)
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.JSONEq(t, `{"proxies":3,"error":"list proxies: the store is away"}`, w.Body.String())
	assert.Contains(t, p.log.String(), `"level":"ERROR"`)
}

func TestOnlyPOSTRuns(t *testing.T) {
	t.Parallel()
	p := newPlane(t, mockOnly)
	h := p.open()
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/healthz", nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		assert.Equal(t, http.MethodPost, w.Header().Get("Allow"))
	}
	run, err := p.store.GetRun(t.Context())
	require.NoError(t, err)
	assert.Zero(t, run.Fence)
}

func TestTheTickIsTheSchedulersWhenThatIsNear(t *testing.T) {
	t.Parallel()
	var tick time.Time
	h := &handler{log: slog.New(slog.DiscardHandler), now: func() time.Time { return start }, run: func(_ context.Context, at time.Time) (reconcile.Summary, error) {
		tick = at
		return reconcile.Summary{}, nil
	}}
	for _, row := range []struct {
		header string
		want   time.Time
	}{
		{"", start}, {"nonsense", start},
		{start.Add(-20 * time.Second).Format(time.RFC3339), start.Add(-20 * time.Second)},
		{start.Add(-time.Hour).Format(time.RFC3339), start},
		{start.Add(time.Hour).Format(time.RFC3339), start},
	} {
		post(h, scheduleHeader, row.header)
		assert.True(t, row.want.Equal(tick), "%q: %s", row.header, tick)
	}
}

func TestACallerThatHangsUpDoesNotCutTheRunShort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	h := &handler{log: slog.New(slog.DiscardHandler), now: time.Now, run: func(ctx context.Context, _ time.Time) (reconcile.Summary, error) {
		cancel()
		err = ctx.Err()
		return reconcile.Summary{}, nil
	}}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx))
	assert.NoError(t, err)
}

func TestWarningsAreWarnings(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]reconcile.Summary{
		"errors": {Errors: map[string]int{"Transient": 1}}, "probes that were not published": {PublishError: "x"}, "frozen orphans": {OrphansFrozen: true},
		"a melt-down": {MeltDown: []string{"main"}}, "an incomplete listing": {Incomplete: []string{"main"}},
	} {
		var log bytes.Buffer
		h := &handler{log: slog.New(slog.NewJSONHandler(&log, nil)), now: time.Now, run: func(context.Context, time.Time) (reconcile.Summary, error) { return s, nil }}
		post(h)
		assert.Contains(t, log.String(), `"level":"WARN"`, name)
	}
}

func TestOpenNamesEveryFaultOfTheProvidersFile(t *testing.T) {
	t.Parallel()
	p := newPlane(t, "- {name: a, type: mock, mock: {listLag: -1}}\n- {name: a, type: mock}\n- {name: b, type: azure}\n- {name: c, type: gcp, surprise: 1}\n")
	_, err := Open(t.Context(), p.app)
	for _, fault := range []string{"PROVIDERS_CONFIG", "listLag", "azure", "surprise", "project"} {
		require.ErrorContains(t, err, fault)
	}
	p.app.Config.ProvidersConfig = ""
	_, err = Open(t.Context(), p.app)
	require.ErrorContains(t, err, "PROVIDERS_CONFIG: must name the file")
	p.app.Config.ProvidersConfig = "/nowhere/providers.yaml"
	_, err = Open(t.Context(), p.app)
	require.ErrorContains(t, err, "/nowhere/providers.yaml")
}

func TestAFleetWithoutManagedProxiesNeedsNoProvider(t *testing.T) {
	t.Parallel()
	p := newPlane(t, "[]\n")
	h := p.open()
	_, err := p.store.CreateProxy(t.Context(), "ext", store.Edit{Spec: map[string]any{"mode": "External", "endpoint": map[string]any{"host": "proxy.example.net"}}})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, post(h).Code)
	doc, err := p.store.GetProxy(t.Context(), "ext")
	require.NoError(t, err)
	assert.Equal(t, fleet.PhaseRunning, doc.Status.Phase)
}

func TestDueProbesArePublishedTenToAMessage(t *testing.T) {
	t.Parallel()
	p := newPlane(t, "[]\n")
	h := p.open()
	for n := range 25 {
		_, err := p.store.CreateProxy(t.Context(), "ext-"+string(rune('a'+n)), store.Edit{Spec: map[string]any{"mode": "External", "endpoint": map[string]any{"host": "proxy.example.net"}}})
		require.NoError(t, err)
	}
	post(h)
	assert.Empty(t, p.topic.messages, "nothing has an address yet")
	p.now = start.Add(time.Minute)
	p.topic.err = errors.New("the topic is away")
	w := post(h)
	require.Len(t, p.topic.messages, 3)
	assert.Len(t, p.topic.messages[0].Proxies, 10)
	assert.Equal(t, p.now, p.topic.messages[0].Tick)
	assert.Equal(t, health.Target{Name: "ext-a", Shard: 0}, p.topic.messages[0].Proxies[0])
	assert.Equal(t, http.StatusOK, w.Code, "a failing proxy or topic never fails the run")
	assert.Contains(t, w.Body.String(), "the topic is away")
	assert.Contains(t, w.Body.String(), `"probesDue":25`)
}

func TestProbesAreSpreadOverTheirInterval(t *testing.T) {
	t.Parallel()
	sent := &topic{}
	pr := prober{health.NewFanout(sent)}
	targets := []reconcile.Target{
		{Name: "often", Interval: time.Minute}, {Name: "seldom", Interval: time.Hour}, {Name: "new", Interval: time.Hour, Unproven: true},
		{Name: "next", Interval: time.Hour, Next: true, Unproven: true, Incarnation: 4},
	}
	counts := map[string]int{}
	for minute := range 60 {
		before := len(sent.messages)
		due, wait := pr.Start(t.Context(), start.Add(time.Duration(minute)*time.Minute), targets)
		require.NoError(t, wait(t.Context()))
		sum := 0
		for _, m := range sent.messages[before:] {
			for _, target := range m.Proxies {
				counts[target.Name]++
				sum++
			}
		}
		assert.Equal(t, due, sum)
	}
	assert.Equal(t, map[string]int{"often": 60, "seldom": 1, "new": 60, "next": 60}, counts)
}

func TestMetricsOfRunsAndProvidersAreRegistered(t *testing.T) {
	t.Parallel()
	p := newPlane(t, mockOnly)
	post(p.open())
	families, err := p.app.Registry.Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, name := range []string{"proxyfleet_runs_total", "proxyfleet_run_duration_seconds", "proxyfleet_provider_calls_total", "proxyfleet_orphans"} {
		assert.True(t, names[name], name)
	}
}
