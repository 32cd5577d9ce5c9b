package health

import (
	"github.com/prometheus/client_golang/prometheus"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// Metrics counts what sweeps see and do. Its counters are those of one process; the state of the
// fleet is in the documents.
type Metrics struct {
	probes      *prometheus.CounterVec
	latency     *prometheus.HistogramVec
	flips       *prometheus.CounterVec
	dropped     *prometheus.CounterVec
	writes      *prometheus.CounterVec
	messages    *prometheus.CounterVec
	judgeDown   prometheus.Counter
	probesInUse prometheus.Gauge
}

// Outcomes of messages.
const (
	messageDone        = "done"
	messageFailed      = "failed"
	messageUndecodable = "undecodable"
)

// NewMetrics registers the health function's metrics with r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_probes_total", Help: "Probes by outcome."}, []string{"outcome"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "proxyfleet_probe_duration_seconds", Help: "How long probes took, by whether they passed.",
			Buckets: []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60}}, []string{"passed"}),
		flips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_verdict_flips_total", Help: "Verdicts that turned, by what they turned to."}, []string{"to"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_probe_results_dropped_total", Help: "Results that counted for nothing, by reason."}, []string{"reason"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_health_writes_total", Help: "Writes of health, by what was written."}, []string{"kind"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_probe_messages_total", Help: "Probe messages received, by what became of them."}, []string{"result"}),
		judgeDown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proxyfleet_judge_down_total", Help: "Health check targets found down without a proxy, once per target and tick."}),
		probesInUse: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proxyfleet_probes_in_flight", Help: "Probes under way."}),
	}
	r.MustRegister(m.probes, m.latency, m.flips, m.dropped, m.writes, m.messages, m.judgeDown, m.probesInUse)
	m.start()
	return m
}

// start makes every series exist from the beginning, so that a rate sees the first event too.
func (m *Metrics) start() {
	for _, o := range []fleet.Outcome{
		fleet.OutcomeOK, fleet.OutcomeStatusMismatch, fleet.OutcomeBodyMismatch, fleet.OutcomeRedirect, fleet.OutcomeBlocked,
		fleet.OutcomeAuthFailed, fleet.OutcomeProxyError, fleet.OutcomeRefused, fleet.OutcomeDNS, fleet.OutcomeConnectTimeout,
		fleet.OutcomeTimeout, fleet.OutcomeReset, fleet.OutcomeTLS, fleet.OutcomeInconclusive,
	} {
		m.probes.WithLabelValues(string(o))
	}
	for vec, values := range map[*prometheus.CounterVec][]string{
		m.flips:    {"healthy", "unhealthy"},
		m.dropped:  {string(DroppedStale), string(DroppedForeign), string(DroppedInconclusive), string(droppedGone)},
		m.writes:   {writeStatus, writeVerdict},
		m.messages: {messageDone, messageFailed, messageUndecodable},
	} {
		for _, v := range values {
			vec.WithLabelValues(v)
		}
	}
}

// Undecodable counts a message that nothing could be made of.
func (m *Metrics) Undecodable() { m.messages.WithLabelValues(messageUndecodable).Inc() }

func (m *Metrics) probed(r Result) {
	m.probes.WithLabelValues(string(r.Outcome)).Inc()
	passed := "no"
	if r.Outcome == fleet.OutcomeOK {
		passed = "yes"
	}
	m.latency.WithLabelValues(passed).Observe(r.Latency.Seconds())
}

func (m *Metrics) flipped(healthy bool) {
	to := "unhealthy"
	if healthy {
		to = "healthy"
	}
	m.flips.WithLabelValues(to).Inc()
}

func (m *Metrics) wrote(kind string)      { m.writes.WithLabelValues(kind).Inc() }
func (m *Metrics) drop(reason Dropped)    { m.dropped.WithLabelValues(string(reason)).Inc() }
func (m *Metrics) message(result string)  { m.messages.WithLabelValues(result).Inc() }
func (m *Metrics) inFlight(delta float64) { m.probesInUse.Add(delta) }
