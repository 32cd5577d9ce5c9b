package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// rig is a page over a memory store.
type rig struct {
	t     *testing.T
	clock *testclock.Clock
	store *counting
	page  *Handler
	shard store.Shard
}

// counting counts looks at the documents, and fails when it is told to.
type counting struct {
	*memory.Store
	looks atomic.Int32
	fail  atomic.Bool
}

func (c *counting) ListProxies(ctx context.Context) ([]fleet.Proxy, error) {
	c.looks.Add(1)
	if c.fail.Load() {
		return nil, errors.New("planted-detail of the store")
	}
	return c.Store.ListProxies(ctx)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	c := testclock.At(now)
	s := &counting{Store: memory.New(c.Now)}
	return &rig{t: t, clock: c, store: s, page: New(Config{
		Store: s, Version: "v1.2.3", Fleet: "project (default)", Now: c.Now, Refusals: func() map[string]int { return map[string]int{"NO_CAPACITY": 3} },
	})}
}

// add makes a proxy with a status and an entry of the catalog.
func (r *rig) add(name string, labels map[string]string, change func(*fleet.Status)) {
	r.t.Helper()
	ctx := context.Background()
	p, err := r.store.CreateProxy(ctx, name, store.Edit{Labels: labels, Spec: map[string]any{
		"mode": "External", "endpoint": map[string]any{"host": "proxy.example.com", "credentialsSecretRef": map[string]any{"name": "planted-name", "key": "planted-key"}},
	}})
	require.NoError(r.t, err)
	p.Status = fleet.Status{UID: "u", Health: fleet.Health{Healthy: true, Outcome: fleet.OutcomeOK, LatencyMs: 42, LastProbeTime: r.clock.Now()}}
	p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionReady, Status: true, Reason: "Healthy"}, r.clock.Now())
	if change != nil {
		change(&p.Status)
	}
	_, err = r.store.WriteStatus(ctx, p, store.AllFields)
	require.NoError(r.t, err)
	r.shard.Version, err = r.store.WriteShard(ctx, r.shard, map[string]fleet.Entry{name: {
		Host: "proxy.example.com", Port: 3128, Region: "us-east1", MaxLeases: 5, Capacity: 5, Credentials: &fleet.SecretRef{Name: "planted-name", Key: "planted-key"},
	}}, nil)
	require.NoError(r.t, err)
}

func (r *rig) lease(proxy string, n int, ttl time.Duration) {
	r.t.Helper()
	_, err := r.store.CreateSlot(context.Background(), store.Slot{
		Proxy: proxy, N: n, LeaseID: proxy + ".0.planted-lease", Holder: "crawler", ExpireTime: r.clock.Now().Add(ttl),
	}, nil)
	require.NoError(r.t, err)
}

func (r *rig) run(summary string) {
	r.t.Helper()
	run, err := r.store.LockRun(context.Background(), "test", r.clock.Now(), time.Minute)
	require.NoError(r.t, err)
	run.EndTime, run.Summary = r.clock.Now(), []byte(summary)
	require.NoError(r.t, r.store.UnlockRun(context.Background(), run))
}

func (r *rig) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func sick(s *fleet.Status) {
	s.Health = fleet.Health{Outcome: fleet.OutcomeRefused, LastProbeTime: now, UnhealthySince: now}
}

func TestThePageShowsTheFleet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("good", map[string]string{"pool": "news"}, func(s *fleet.Status) { s.AddEvent(now, "Created", "first seen") })
	r.add("bad", nil, sick)
	r.lease("good", 0, time.Hour)
	r.run("")
	r.clock.Advance(3 * time.Minute)
	w := r.get("/")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	body := w.Body.String()
	for _, part := range []string{
		"<b>2</b> proxies", `<b>1</b> <span class="dot good"></span>Ready`, `<b>1</b> <span class="dot bad"></span>Unhealthy`, "<b>1 / 5</b> leases live", "pool=news", "ok, 42 ms", "nothing listens at its address", "us-east1",
		"NO_CAPACITY <b>3</b>", "first seen", "v1.2.3", "project (default)", `<time datetime="2030-01-01T12:00:00Z">3m</time>`, "1 of 5 leases live",
	} {
		require.Contains(t, body, part)
	}
	require.Less(t, strings.Index(body, `href="/?proxy=bad"`), strings.LastIndex(body, `href="/?proxy=good">good</a><br>`), "what needs hands comes first")
	require.NotContains(t, body, "planted", "neither credentials nor where they are, nor lease ids")
}

func TestTheLastProbesAreDrawn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("a", nil, nil)
	require.NotContains(t, r.get("/").Body.String(), "<svg")
	p, err := r.store.GetProxy(t.Context(), "a")
	require.NoError(t, err)
	r.clock.Advance(time.Minute)
	sick(&p.Status)
	p.Status.Health.LastProbeTime = r.clock.Now()
	_, err = r.store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	require.Contains(t, r.get("/").Body.String(), `aria-label="last 2 probes: 1 failed, slowest 42 ms"`)
}

func TestOnePartIsEnoughForAnUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("good", nil, nil)
	whole, part := r.get("/").Body.String(), r.get("/?part=main").Body.String()
	require.Contains(t, whole, "<main id=\"main\">"+part+"</main>")
	require.NotContains(t, part, "<script")
}

func TestAFilterAndADetail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("good", nil, nil)
	r.add("bad", nil, func(s *fleet.Status) {
		sick(s)
		s.AddEvent(now, "WentDown", "it was refused")
		s.Instance = &fleet.Instance{Name: "vm-1", Incarnation: 3, State: "Running", Zone: "us-east1-b"}
		s.Next = &fleet.Instance{Name: "vm-2", Incarnation: 4}
	})
	body := r.get("/?state=Unhealthy").Body.String()
	require.Contains(t, body, `<h2 id="fleet" tabindex="-1">Unhealthy</h2>`)
	require.NotContains(t, body, `href="/?proxy=good">good</a><br>`)
	require.Contains(t, r.get("/?state=Paused").Body.String(), "No proxy is Paused.")
	detail := r.get("/?proxy=bad").Body.String()
	for _, part := range []string{"What next", "vm-1, number 3, Running in us-east1-b", "vm-2, number 4, asked for", "it was refused", "<b>Ready</b> yes"} {
		require.Contains(t, detail, part)
	}
	require.Contains(t, r.get("/?proxy=nowhere").Body.String(), "There is no proxy nowhere.")
}

func TestAnEmptyFleetSaysWhatToDo(t *testing.T) {
	t.Parallel()
	body := newRig(t).get("/").Body.String()
	require.Contains(t, body, "There are no proxies yet.")
	require.Contains(t, body, "No run has finished yet.")
	require.Contains(t, body, `<b>0</b> <span class="dot good"></span>Ready`)
}

func TestWhatOthersWroteStaysText(t *testing.T) {
	t.Parallel()
	hostile := `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	r := newRig(t)
	r.add("a", map[string]string{"pool": hostile}, func(s *fleet.Status) {
		sick(s)
		s.Health.Detail, s.Health.ExitAddress = hostile, hostile
		s.AddEvent(now, hostile, hostile)
		s.Conditions.Set(fleet.Condition{Type: fleet.ConditionReady, Reason: hostile, Message: hostile}, now)
		s.Instance = &fleet.Instance{Name: hostile, Zone: hostile, State: hostile}
	})
	r.page.config.Version, r.page.config.Fleet = hostile, hostile
	r.page.config.Refusals = func() map[string]int { return map[string]int{hostile: 1} }
	for _, path := range []string{"/", "/?proxy=a", "/?part=main", "/?state=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/?proxy=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"} {
		body := r.get(path).Body.String()
		require.NotContains(t, body, "<script>alert", path)
		require.NotContains(t, body, "<img", path)
	}
}

func TestTheBrowserRunsNothingButThePagesOwn(t *testing.T) {
	t.Parallel()
	w := newRig(t).get("/")
	csp := w.Header().Get("Content-Security-Policy")
	require.Contains(t, csp, "default-src 'none'")
	require.Contains(t, csp, "script-src 'sha256-")
	require.Contains(t, csp, "frame-ancestors 'none'")
	require.NotContains(t, csp, "unsafe")
	require.Contains(t, csp, hashOf(w.Body.String(), "script"), "the hash is of the script as it is sent")
	require.Contains(t, csp, hashOf(w.Body.String(), "style"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	require.NotContains(t, strings.ReplaceAll(w.Body.String(), "http-equiv", ""), "http", "nothing is loaded from elsewhere")
}

func TestManyWhoLookCostOneReading(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("a", nil, nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { r.get("/") })
	}
	wg.Wait()
	require.EqualValues(t, 1, r.store.looks.Load())
	r.clock.Advance(keep)
	r.get("/")
	require.EqualValues(t, 2, r.store.looks.Load())
}

func TestAnOutageIsSaidWithoutDetails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.fail.Store(true)
	w := r.get("/")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotContains(t, w.Body.String(), "planted")
	r.store.fail.Store(false)
	require.Equal(t, http.StatusOK, r.get("/").Code, "a failure is not kept")
}

func TestAThousandProxiesAreOnePage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 1000 {
		r.add(fmt.Sprintf("p-%04d", i), map[string]string{"pool": "news"}, nil)
	}
	body := r.get("/").Body.String()
	require.Contains(t, body, "<b>1000</b> proxies")
	require.Less(t, len(body), 1<<20, "bytes")
}
