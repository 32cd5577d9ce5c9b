package lease

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestMetricsCountWhatHappened(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 2))
	reg := prometheus.NewRegistry()
	r.Service = New(Deps{Store: r.store, Secrets: r.vault, Metrics: NewMetrics(reg), Now: r.clock.Now})
	r.server.Service = r.Service
	r.mustCall(http.MethodPost, "/v1/leases", "", http.StatusCreated)
	lease := r.mustCall(http.MethodPost, "/v1/leases", "", http.StatusCreated)
	r.mustCall(http.MethodPost, "/v1/leases", "", http.StatusServiceUnavailable)
	r.mustCall(http.MethodPost, "/v1/leases/"+lease["id"].(string)+":release", `{"outcome":"banned"}`, http.StatusOK)
	r.mustCall(http.MethodPost, "/v1/leases/x:sell", "", http.StatusNotFound)
	r.clock.Advance(countKept)
	r.mustCall(http.MethodGet, "/v1/status", "", http.StatusOK)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP proxyfleet_leases_granted_total Leases granted.
# TYPE proxyfleet_leases_granted_total counter
proxyfleet_leases_granted_total 2
# HELP proxyfleet_leases_refused_total Acquires refused by reason.
# TYPE proxyfleet_leases_refused_total counter
proxyfleet_leases_refused_total{reason="NO_CAPACITY"} 1
# HELP proxyfleet_lease_outcomes_total Outcomes that crawlers reported.
# TYPE proxyfleet_lease_outcomes_total counter
proxyfleet_lease_outcomes_total{outcome="banned"} 1
# HELP proxyfleet_leases_live Live leases in the store.
# TYPE proxyfleet_leases_live gauge
proxyfleet_leases_live 1
# HELP proxyfleet_slots_free Free slots of ready proxies.
# TYPE proxyfleet_slots_free gauge
proxyfleet_slots_free 1
# HELP proxyfleet_lease_calls_total Calls of the lease API by verb and HTTP status.
# TYPE proxyfleet_lease_calls_total counter
proxyfleet_lease_calls_total{code="200",verb="release"} 1
proxyfleet_lease_calls_total{code="200",verb="status"} 1
proxyfleet_lease_calls_total{code="201",verb="acquire"} 2
proxyfleet_lease_calls_total{code="404",verb="unknown"} 1
proxyfleet_lease_calls_total{code="503",verb="acquire"} 1
`), "proxyfleet_leases_granted_total", "proxyfleet_leases_refused_total", "proxyfleet_lease_outcomes_total", "proxyfleet_leases_live", "proxyfleet_slots_free", "proxyfleet_lease_calls_total"))
}

func TestMetricsOfTheStoreComeFromTheStoreAndAreLeftOutWhileItIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(2, 2))
	r.mustAcquire(Request{}) // by another instance
	s := newSpy(r.store)
	reg := prometheus.NewRegistry()
	New(Deps{Store: s, Secrets: r.vault, Metrics: NewMetrics(reg), Now: r.clock.Now})
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP proxyfleet_leases_live Live leases in the store.
# TYPE proxyfleet_leases_live gauge
proxyfleet_leases_live 1
# HELP proxyfleet_slots_free Free slots of ready proxies.
# TYPE proxyfleet_slots_free gauge
proxyfleet_slots_free 3
`), "proxyfleet_leases_live", "proxyfleet_slots_free"))
	s.fail = errors.New("on fire")
	r.clock.Advance(time.Minute)
	n, err := testutil.GatherAndCount(reg, "proxyfleet_leases_live", "proxyfleet_slots_free")
	require.NoError(t, err)
	require.Zero(t, n)
}

func (r *rig) mustCall(method, path, body string, want int) map[string]any {
	r.t.Helper()
	status, answer, _ := r.call(method, path, body)
	require.Equal(r.t, want, status, answer)
	return answer
}
