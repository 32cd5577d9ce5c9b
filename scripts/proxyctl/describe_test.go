package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func TestDescribeTellsWhyAndWhatHappened(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a"), "apply", "-f", "-")
	r.ready("a")
	start := r.clock.Now()
	r.status("a", func(s *fleet.Status) {
		s.Health = fleet.Health{Outcome: fleet.OutcomeBlocked, Detail: "429", LastProbeTime: start.Add(5 * time.Minute), UnhealthySince: start.Add(time.Minute), ExitAddress: "192.0.2.9"}
		s.Next = &fleet.Instance{Name: "vm-a-2", Incarnation: 2, Zone: "us-east1-c", IntentTime: start.Add(4 * time.Minute)}
		s.Replacing = "unhealthy"
		s.Conditions.Set(fleet.Condition{Type: fleet.ConditionReady, Status: false, Reason: "Unhealthy", Message: "the target blocks it"}, start.Add(time.Minute))
		s.AddEvent(start, "Created", "vm-a in us-east1-b")
		s.AddEvent(start.Add(4*time.Minute), "Replacing", "unhealthy for 3m")
	})
	for n, expires := range []time.Duration{time.Hour, time.Minute} {
		_, err := r.store.CreateSlot(t.Context(), store.Slot{Proxy: "a", N: n, LeaseID: "a.0.planted-lease-secret", AcquireTime: start, ExpireTime: start.Add(expires)}, nil)
		require.NoError(t, err)
	}
	r.clock.Advance(6 * time.Minute)
	out := r.ok("", "describe", "a")
	require.Equal(t, strings.TrimLeft(`
Name        a
State       Unhealthy, for 5m
Why         the target blocks it (403 or 429): 429
Next        probed again every 1m; replaced when unhealthy for 10m, in 5m
Mode        Managed mock
Labels      pool=news
Address     192.0.2.1:3128
Instance    vm-a (number 1), Running, zone us-east1-b, asked for 6m ago
Successor   vm-a-2 (number 2), asked for, zone us-east1-c, asked for 2m ago
Last probe  blocked, 0 ms, 60s ago: the target blocks it (403 or 429)
Leaves by   192.0.2.9
Leases      1 live of 5

Conditions
  Ready  false  5m  Unhealthy  the target blocks it

History
  2m ago  Replacing  unhealthy for 3m
  6m ago  Created    vm-a in us-east1-b
`, "\n"), out)
	require.NotContains(t, out, "planted-lease-secret", "who knows a lease's id can give it back")
}

func TestDescribeOfWhatIsNew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a"), "apply", "-f", "-")
	out := r.ok("", "describe", "a")
	require.Contains(t, out, "Why      the plane has not seen it yet")
	require.Contains(t, out, "History\n  none yet\n")
}

// plane makes the rig's store what a plane that works has made of it.
func (r *rig) plane() {
	r.t.Helper()
	r.ok(document("a"), "apply", "-f", "-")
	r.ready("a")
	entry := fleet.Entry{Host: "192.0.2.1", Port: 3128, Incarnation: 1, Gate: fleet.GateOpen, Capacity: 5, Verdict: fleet.Verdict{Healthy: true, Incarnation: 1, Since: r.clock.Now()}}
	_, err := r.store.WriteShard(r.t.Context(), store.Shard{ID: 0}, map[string]fleet.Entry{"a": entry}, nil)
	require.NoError(r.t, err)
	r.finishRun()
}

func (r *rig) finishRun() {
	r.t.Helper()
	run, err := r.store.LockRun(r.t.Context(), "test", r.clock.Now(), time.Minute)
	require.NoError(r.t, err)
	run.EndTime = r.clock.Now()
	require.NoError(r.t, r.store.UnlockRun(r.t.Context(), run))
}

func TestDoctorFindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plane()
	r.clock.Advance(30 * time.Second)
	function := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"version":"v1","liveLeases":2,"freeSlots":3}`))
	}))
	t.Cleanup(function.Close)
	out := r.ok("", "doctor", "--url", function.URL)
	for _, line := range []string{
		"project p, database (default)", "1 proxies, 1 Ready", "there; 0 leases live", "finished 30s ago", "1 entries, 1 of them can be leased",
		"version v1 answers: 2 leases live, 3 slots free",
	} {
		require.Contains(t, out, line)
	}
	require.NotContains(t, out, "FAIL")
	require.Contains(t, r.ok("", "doctor"), "not asked: give its address as --url or LEASE_URL")
}

// unindexed is a database that nobody deployed to.
type unindexed struct{ store.Store }

func (unindexed) CountSlots(context.Context, time.Time) (int64, error) {
	return 0, errors.New("the query requires an index")
}

func TestDoctorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		prepare func(*rig)
		store   func(store.Store) store.Store
		args    []string
		finding string
	}{
		"no run yet": {func(r *rig) { *r = *newRig(r.t) }, nil, nil, "none has finished yet: does the scheduler call"},
		"runs stopped": {func(r *rig) { r.clock.Advance(6 * time.Minute) }, nil, nil,
			"finished 6m0s ago: does the scheduler call"},
		"a broken document": {func(r *rig) {
			r.status("a", func(s *fleet.Status) {
				s.Conditions.Set(fleet.Condition{Type: fleet.ConditionAccepted, Reason: "Invalid", Message: "spec.mode: must not change"}, r.clock.Now())
			})
		}, nil, nil, "1 of 1 documents break a rule"},
		"a proxy without an entry": {func(r *rig) { r.ok(document("b"), "apply", "-f", "-") }, nil, nil, "1 proxies without an entry, 0 entries without a proxy"},
		"an entry without a proxy": {func(r *rig) { require.NoError(r.t, r.store.RemoveProxy(r.t.Context(), r.proxy("a"))) }, nil, nil,
			"0 proxies without an entry, 1 entries without a proxy"},
		"no index":              {nil, func(s store.Store) store.Store { return unindexed{s} }, nil, "slots cannot be counted: the query requires an index; deploy makes the index"},
		"no right to read":      {nil, func(s store.Store) store.Store { return gone{s} }, nil, "you need roles/datastore.user"},
		"no lease function":     {nil, nil, []string{"--url", "http://127.0.0.1:1"}, "does not answer"},
		"a URL that is none":    {nil, nil, []string{"--url", "nowhere"}, "must be http://HOST"},
		"a URL with a password": {nil, nil, []string{"--url", "http://u:planted@127.0.0.1:1"}, "must have no credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.plane()
			if row.prepare != nil {
				row.prepare(r)
			}
			s := r.store
			if row.store != nil {
				s = row.store(s)
			}
			got := r.runOn(t.Context(), s, "", append([]string{"doctor"}, row.args...)...)
			require.Equal(t, exitFailed, got.code)
			require.Contains(t, got.out, row.finding)
			require.Contains(t, got.out, "ok    configuration", "one finding does not hide the others")
			require.NotContains(t, got.out+got.errs, "planted")
		})
	}
}
