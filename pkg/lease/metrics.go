package lease

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what an instance does. Live leases and free slots come from the store.
type Metrics struct {
	calls    *prometheus.CounterVec
	granted  prometheus.Counter
	refused  *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	seconds  prometheus.Histogram
	live     prometheus.Gauge
	free     prometheus.Gauge
}

// NewMetrics registers the metrics of leasing.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proxyfleet_lease_calls_total", Help: "Calls of the lease API by verb and HTTP status."}, []string{"verb", "code"}),
		granted:  prometheus.NewCounter(prometheus.CounterOpts{Name: "proxyfleet_leases_granted_total", Help: "Leases granted."}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proxyfleet_leases_refused_total", Help: "Acquires refused by reason."}, []string{"reason"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proxyfleet_lease_outcomes_total", Help: "Outcomes that crawlers reported."}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "proxyfleet_lease_acquire_seconds", Help: "Time to grant or refuse a lease, without waiting for a slot.", Buckets: prometheus.ExponentialBuckets(0.002, 2, 12),
		}),
		live: prometheus.NewGauge(prometheus.GaugeOpts{Name: "proxyfleet_leases_live", Help: "Live leases in the store, when last counted."}),
		free: prometheus.NewGauge(prometheus.GaugeOpts{Name: "proxyfleet_slots_free", Help: "Free slots of ready proxies, when last counted."}),
	}
	r.MustRegister(m.calls, m.granted, m.refused, m.outcomes, m.seconds, m.live, m.free)
	return m
}

func (m *Metrics) acquired(took time.Duration, waited bool, n int, err error) {
	if m == nil {
		return
	}
	if !waited {
		m.seconds.Observe(took.Seconds())
	}
	m.granted.Add(float64(n))
	if err != nil {
		m.refused.WithLabelValues(string(asError(err).Reason)).Inc()
	}
}
