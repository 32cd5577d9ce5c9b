package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gcfirestore "cloud.google.com/go/firestore"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// The shape of the benchmark: crawlers at once, slots per proxy, and rounds of which the median is
// printed. In a round the two take turns in short slices, so that what else the machine does meets both.
const (
	benchWorkers  = 32
	benchCapacity = 5
	benchRounds   = 5
	benchSlices   = 6
	benchSlice    = 250 * time.Millisecond
	coldStarts    = 31 // of each program, in turn
)

// BenchmarkLease prints what an acquire and a release cost over HTTP, against the bare create and
// delete of a document by the client, in turn in one run; for fleets that are half full and 99 % full.
// Run it with -benchtime=1x and a Firestore emulator.
func BenchmarkLease(b *testing.B) {
	if os.Getenv("FIRESTORE_EMULATOR_HOST") == "" {
		b.Skip("SKIPPED: no Firestore emulator; run make bench-lease")
	}
	for _, full := range []bool{false, true} {
		for _, n := range []int{10, 100, 1000} {
			b.Run(map[bool]string{false: "half", true: "full"}[full]+"/"+strconv.Itoa(n), func(b *testing.B) {
				for range b.N {
					newBench(b, n, full).run(b)
				}
			})
		}
	}
}

// bench is one fleet on a database of its own.
type bench struct {
	n     int
	full  bool
	store *meter
	raw   *gcfirestore.Client
	wires []*wire // one per worker

	refused atomic.Int64
}

func newBench(b *testing.B, n int, full bool) *bench {
	b.Helper()
	project := fmt.Sprintf("bench-%d", rand.Int64())
	s, err := firestore.Open(b.Context(), project, "(default)")
	require.NoError(b, err)
	b.Cleanup(func() { _ = s.Close() })
	raw, err := gcfirestore.NewClient(b.Context(), project)
	require.NoError(b, err)
	b.Cleanup(func() { _ = raw.Close() })
	m := &bench{n: n, full: full, store: &meter{Store: s}, raw: raw}
	entries := map[string]fleet.Entry{}
	for i := range n {
		entries[fmt.Sprintf("p-%04d", i)] = ready(benchCapacity)
	}
	_, err = s.WriteShard(b.Context(), store.Shard{}, entries, nil)
	require.NoError(b, err)
	service := New(Deps{Store: m.store, Secrets: vault{}, Metrics: NewMetrics(prometheus.NewRegistry()), Now: time.Now, Log: slog.New(slog.NewJSONHandler(io.Discard, nil))})
	server := httptest.NewServer((&Server{Service: service, Version: "bench"}).Handler())
	b.Cleanup(server.Close)
	for range benchWorkers {
		m.wires = append(m.wires, dialWire(b, server.Listener.Addr().String()))
	}
	m.fill(b)
	return m
}

// fill takes slots as other crawlers would, through the same API, so that half of them are free while
// the workers hold theirs, or one in a hundred.
func (m *bench) fill(b *testing.B) {
	b.Helper()
	slots := m.n * benchCapacity
	want := max(0, slots/2-benchWorkers)
	if m.full {
		want = slots - max(1, slots/100)
	}
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(want))
	for _, w := range m.wires {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if status, _, err := w.post("/v1/leases", `{"ttlSeconds":3600}`); err != nil || status != http.StatusCreated {
					left.Add(1)
				}
			}
		})
	}
	wg.Wait()
}

func (m *bench) run(b *testing.B) {
	b.Helper()
	m.rawSlice() // warm up
	m.leaseSlice()
	var ours, raw, ratios []float64
	m.store.reset()
	m.refused.Store(0)
	acquires, cycles := int64(0), int64(0)
	for range benchRounds {
		var theirs, mine int64
		for range benchSlices {
			theirs += m.rawSlice()
			c, a := m.leaseSlice()
			mine, acquires = mine+c, acquires+a
		}
		cycles += mine
		ours, raw = append(ours, perSecond(mine)), append(raw, perSecond(theirs))
		ratios = append(ratios, float64(mine)/float64(max(1, theirs)))
	}
	fill := "0.50"
	if m.full {
		fill = "0.99"
	}
	fmt.Printf("lease_bench fleet=%d fill=%s cycles_per_s=%.0f raw_per_s=%.0f ratio=%.2f rpcs_per_acquire=%.2f reads_per_cycle=%.3f refused=%d overcommit=%d\n",
		m.n, fill, median(ours), median(raw), median(ratios),
		float64(m.store.acquireCalls.Load())/float64(max(1, acquires)), float64(m.store.reads.Load())/float64(max(1, cycles)), m.refused.Load(), m.store.overcommit.Load())
	require.Zero(b, m.store.overcommit.Load())
}

func perSecond(n int64) float64 { return float64(n) / (benchSlices * benchSlice).Seconds() }

// leaseSlice lets the workers acquire and release; it returns cycles done and acquires tried.
func (m *bench) leaseSlice() (cycles, acquires int64) {
	var done, tried atomic.Int64
	body := "{}"
	if m.full { // crawlers that find no place wait for one
		body = `{"waitSeconds":1}`
	}
	m.workers(func(w *wire) {
		tried.Add(1)
		status, answer, err := w.post("/v1/leases", body)
		if err != nil || status != http.StatusCreated {
			m.refused.Add(1)
			return
		}
		release := "/v1/leases/" + leaseIDIn(answer) + ":release"
		for range 5 { // a release can be repeated
			if status, _, err := w.post(release, ""); err == nil && status == http.StatusOK {
				done.Add(1)
				return
			}
		}
	})
	return done.Load(), tried.Load()
}

// rawSlice has the same workers create and delete documents of the same size with the bare client, and
// returns cycles done.
func (m *bench) rawSlice() int64 {
	var done atomic.Int64
	m.workers(func(*wire) {
		now := time.Now()
		id := randomID()
		ref := m.raw.Collection("slots-raw").Doc(id)
		doc := map[string]any{
			"proxy": "p-0000", "n": 1, "leaseId": "p-0000.1." + id, "incarnation": 1, "holder": "", "requestId": "", "target": "", "rebound": false,
			"acquireTime": now, "expireTime": now.Add(DefaultTTL), "bucket": 3,
		}
		if _, err := ref.Create(context.Background(), doc); err != nil {
			return
		}
		if _, err := ref.Delete(context.Background()); err == nil {
			done.Add(1)
		}
	})
	return done.Load()
}

func (m *bench) workers(work func(*wire)) {
	end := time.Now().Add(benchSlice)
	var wg sync.WaitGroup
	for _, w := range m.wires {
		wg.Go(func() {
			for time.Now().Before(end) {
				work(w)
			}
		})
	}
	wg.Wait()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// meter counts what acquires cost: calls to the store on their behalf, and documents read. It also
// watches that no slot is taken twice.
type meter struct {
	store.Store
	held       sync.Map
	overcommit atomic.Int64

	acquireCalls atomic.Int64 // all calls but those that release
	reads        atomic.Int64 // documents, as Firestore bills them
}

func (m *meter) reset() {
	m.acquireCalls.Store(0)
	m.reads.Store(0)
}

func (m *meter) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	shards, err := m.Store.ReadCatalog(ctx)
	m.acquireCalls.Add(1)
	m.reads.Add(int64(max(1, len(shards))))
	return shards, err
}

func (m *meter) CreateSlot(ctx context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	m.acquireCalls.Add(1)
	got, err := m.Store.CreateSlot(ctx, s, req)
	if err == nil {
		if _, twice := m.held.LoadOrStore(store.SlotID(s.Proxy, s.N), true); twice {
			m.overcommit.Add(1)
		}
	}
	return got, err
}

func (m *meter) DeleteSlot(ctx context.Context, s store.Slot) error {
	m.held.Delete(store.SlotID(s.Proxy, s.N)) // before: the next one may take it before we know that it is free
	return m.Store.DeleteSlot(ctx, s)
}

func (m *meter) ReplaceSlot(ctx context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	m.acquireCalls.Add(1)
	return m.Store.ReplaceSlot(ctx, s, req)
}

func (m *meter) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	m.acquireCalls.Add(1)
	m.reads.Add(1)
	return m.Store.GetSlot(ctx, proxy, n)
}

func (m *meter) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	slots, err := m.Store.SlotsFrom(ctx, from, to, limit)
	m.acquireCalls.Add(1)
	m.reads.Add(int64(max(1, len(slots))))
	return slots, err
}

func (m *meter) CountSlots(ctx context.Context, at time.Time) (int64, error) {
	m.acquireCalls.Add(1)
	n, err := m.Store.CountSlots(ctx, at)
	m.reads.Add(1 + n/1000)
	return n, err
}

// BenchmarkColdStart prints how long the lease function takes from its start to its first answer,
// against a bare program of the functions framework, in turn in one run.
func BenchmarkColdStart(b *testing.B) {
	if os.Getenv("FIRESTORE_EMULATOR_HOST") == "" {
		b.Skip("SKIPPED: no Firestore emulator; run make bench-lease")
	}
	dir := b.TempDir()
	lease := buildProgram(b, dir, "lease", `_ "crawl.example.com/proxyfleet/functions/lease"`, "")
	bare := buildProgram(b, dir, "bare", `"net/http"`+"\n\t"+`"github.com/GoogleCloudPlatform/functions-framework-go/functions"`,
		`func init() { functions.HTTP("Lease", func(w http.ResponseWriter, _ *http.Request) {}) }`)
	for range b.N {
		var ours, theirs []float64
		for range coldStarts {
			theirs = append(theirs, coldStart(b, bare))
			ours = append(ours, coldStart(b, lease))
		}
		a, f := median(ours), median(theirs)
		fmt.Printf("cold_start lease_ms=%.0f framework_ms=%.0f ratio=%.2f\n", a, f, a/f)
	}
}

// buildProgram builds a main that serves FUNCTION_TARGET, without writing into the tree.
func buildProgram(b *testing.B, dir, name, imports, more string) string {
	b.Helper()
	source := fmt.Sprintf("package main\n\nimport (\n\t\"os\"\n\n\t%s\n\t\"github.com/GoogleCloudPlatform/functions-framework-go/funcframework\"\n)\n\n%s\n\nfunc main() { _ = funcframework.StartHostPort(\"127.0.0.1\", os.Getenv(\"PORT\")) }\n", imports, more)
	file := filepath.Join(dir, name+".go")
	require.NoError(b, os.WriteFile(file, []byte(source), 0o600))
	here, err := os.Getwd()
	require.NoError(b, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "bench-"+name, "main.go"): file}})
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(file+".json", overlay, 0o600))
	out, err := exec.Command("go", "build", "-overlay", file+".json", "-o", filepath.Join(dir, name), "./bench-"+name).CombinedOutput()
	require.NoError(b, err, "%s", out)
	return filepath.Join(dir, name)
}

// coldStart returns the milliseconds from exec to the first 200.
func coldStart(b *testing.B, program string) float64 {
	b.Helper()
	l := httptest.NewUnstartedServer(nil)
	port := l.Listener.Addr().String()
	port = port[strings.LastIndex(port, ":")+1:]
	_ = l.Listener.Close()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "FUNCTION_TARGET=Lease", "PORT="+port, "PROJECT_ID=cold-start", "METRICS_PORT=0", "LOG_LEVEL=error")
	cmd.Stderr = &bytes.Buffer{}
	began := time.Now()
	require.NoError(b, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for time.Since(began) < 20*time.Second {
		resp, err := client.Get("http://127.0.0.1:" + port + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return float64(time.Since(began).Microseconds()) / 1000
			}
		}
		time.Sleep(500 * time.Microsecond) // polls; nothing is waited for by the clock alone
	}
	require.Fail(b, "no answer")
	return 0
}
