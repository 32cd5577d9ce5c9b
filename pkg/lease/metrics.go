package lease

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what an instance does. Live leases and free slots come from the store, whatever instance
// granted them, when they are asked for; where the store is away they are left out.
type Metrics struct {
	calls    *prometheus.CounterVec
	granted  prometheus.Counter
	refused  *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	seconds  prometheus.Histogram
	live     *prometheus.Desc
	free     *prometheus.Desc
	measure  atomic.Pointer[func(context.Context) (live, free int, err error)]
}

// measureTimeout bounds the look at the store that a scrape makes.
const measureTimeout = 5 * time.Second

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
		live: prometheus.NewDesc("proxyfleet_leases_live", "Live leases in the store.", nil, nil),
		free: prometheus.NewDesc("proxyfleet_slots_free", "Free slots of ready proxies.", nil, nil),
	}
	r.MustRegister(m.calls, m.granted, m.refused, m.outcomes, m.seconds, m)
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.live
	ch <- m.free
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	measure := m.measure.Load()
	if measure == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), measureTimeout)
	defer cancel()
	live, free, err := (*measure)(ctx)
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(m.live, prometheus.GaugeValue, float64(live))
	ch <- prometheus.MustNewConstMetric(m.free, prometheus.GaugeValue, float64(free))
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
