package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

// TestMain makes the test binary a proxyctl where a test needs one of its own, for signals and exit codes.
func TestMain(m *testing.M) {
	if os.Getenv("PROXYCTL_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// buffer may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// rig is a store with operators and a plane around it.
type rig struct {
	t     *testing.T
	clock *testclock.Clock
	store store.Store
	dir   string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	c := testclock.At(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	return &rig{t: t, clock: c, store: memory.New(c.Now), dir: t.TempDir()}
}

// said is what one command came to.
type said struct {
	code      int
	out, errs string
}

// run runs one command line; "-f -" reads in.
func (r *rig) run(in string, args ...string) said {
	return r.runOn(r.t.Context(), r.store, in, args...)
}

func (r *rig) runOn(ctx context.Context, s store.Store, in string, args ...string) said {
	var out, errs buffer
	c := r.cli(s, in, &out, &errs)
	code := c.run(ctx, append([]string{"--project", "p"}, args...))
	return said{code, out.String(), errs.String()}
}

func (r *rig) cli(s store.Store, in string, out, errs *buffer) *cli {
	open := func(context.Context, string, string) (store.Store, func() error, error) { return s, nil, nil }
	return &cli{in: strings.NewReader(in), out: out, errs: errs, open: open, now: r.now(), poll: time.Millisecond}
}

// now is the rig's clock, or the wall's when it has none.
func (r *rig) now() func() time.Time {
	if r.clock == nil {
		return time.Now
	}
	return r.clock.Now
}

// ok runs a command that must succeed and returns its output.
func (r *rig) ok(in string, args ...string) string {
	r.t.Helper()
	got := r.run(in, args...)
	require.Equal(r.t, exitOK, got.code, "%v: %s%s", args, got.out, got.errs)
	return got.out
}

func (r *rig) proxy(name string) fleet.Proxy {
	r.t.Helper()
	p, err := r.store.GetProxy(r.t.Context(), name)
	require.NoError(r.t, err)
	return p
}

// status writes a status as the plane would.
func (r *rig) status(name string, change func(*fleet.Status)) {
	r.t.Helper()
	p := r.proxy(name)
	change(&p.Status)
	_, err := r.store.WriteStatus(r.t.Context(), p, store.AllFields)
	require.NoError(r.t, err)
}

// ready makes a proxy what the plane makes of it when all goes well.
func (r *rig) ready(name string) {
	r.t.Helper()
	hash := fleet.SpecHash(r.proxy(name).Spec)
	r.status(name, func(s *fleet.Status) {
		now := r.clock.Now()
		s.UID, s.Phase, s.Incarnation = "u", fleet.PhaseRunning, s.Incarnation+1
		s.Instance = &fleet.Instance{Name: "vm-" + name, Incarnation: s.Incarnation, Zone: "us-east1-b", State: "Running", SpecHash: hash, CreateTime: now, IntentTime: now}
		s.Endpoint = &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: s.Incarnation}
		s.Health = fleet.Health{Healthy: true, Outcome: fleet.OutcomeOK, LatencyMs: 42, LastProbeTime: now, Incarnation: s.Incarnation}
		s.Accepted = &fleet.Accepted{Mode: fleet.Managed, Provider: "mock"}
		s.Conditions.Set(fleet.Condition{Type: fleet.ConditionReady, Status: true, Reason: "Healthy"}, now)
	})
}

func (r *rig) file(name, text string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// document is a valid manifest; edits are pairs of what is replaced by what.
func document(name string, edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata:
  name: ` + name + `
  labels: {pool: news}
spec:
  mode: Managed
  provider: mock
  placement: {region: us-east1, zone: us-east1-b, machineType: e2-micro}
  cloudInit: {inline: "#cloud-config"}
  endpoint: {port: 3128}
  maxLeases: 5
`)
}

var errGone = errors.New("no route to host")

func contains(text, part string) bool { return strings.Contains(text, part) }
