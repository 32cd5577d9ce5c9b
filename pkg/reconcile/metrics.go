package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// Metrics tell of runs. Gauges show the fleet as the last run of this process left it; counters are
// those of this process. A nil *Metrics counts nothing.
type Metrics struct {
	runs         *prometheus.CounterVec
	seconds      prometheus.Histogram
	proxies      *prometheus.GaugeVec
	conditions   *prometheus.GaugeVec
	replacements *prometheus.CounterVec
	errors       *prometheus.CounterVec
	orphans      prometheus.Gauge
	frozen       prometheus.Gauge
	meltDown     *prometheus.GaugeVec
	lastSuccess  prometheus.Gauge
}

// Outcomes of runs.
const (
	outcomeDone      = "done"
	outcomeOutOfTime = "out_of_time" // the next run goes on
	outcomeSkipped   = "skipped"     // somebody else had the lock
	outcomeFailed    = "failed"      // could not lock, read or list
)

// errorLabels are the classes of errors as labels, in the form of those of provider calls.
var errorLabels = map[string]string{
	classNotFound: "not_found", classQuota: "quota_exceeded", classTransient: "transient", classPermanent: "permanent",
	errorStore: "store", errorCatalog: "catalog", errorPanic: "panic", errorTime: "timeout",
}

// NewMetrics registers the metrics of reconcile with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_runs_total", Help: "Runs of reconcile by outcome."}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "proxyfleet_run_duration_seconds", Help: "How long runs took that had the lock.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 90, 150}}),
		proxies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "proxyfleet_proxies", Help: "Proxies by phase and provider, as the last run left them."}, []string{"phase", "provider"}),
		conditions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "proxyfleet_proxy_conditions", Help: "Proxies by condition and its status, as the last run left them."}, []string{"condition", "status"}),
		replacements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_replacements_total", Help: "Instances given up for others, by reason."}, []string{"reason"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_run_errors_total", Help: "What went wrong in runs, by class."}, []string{"class"}),
		orphans: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proxyfleet_orphans", Help: "Instances of ours that no document asked for, in the last run."}),
		frozen: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proxyfleet_orphans_frozen", Help: "1 while so many instances are orphans that none is deleted."}),
		meltDown: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "proxyfleet_meltdown", Help: "1 while so many Proxies of a provider are unhealthy that none is replaced for it."}, []string{"provider"}),
		lastSuccess: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proxyfleet_last_run_timestamp_seconds", Help: "When the last run of this process ended that did not fail."}),
	}
	reg.MustRegister(m.runs, m.seconds, m.proxies, m.conditions, m.replacements, m.errors, m.orphans, m.frozen, m.meltDown, m.lastSuccess)
	m.start()
	return m
}

// start makes every series with known labels exist, so that a rate sees the first event too.
func (m *Metrics) start() {
	for _, o := range []string{outcomeDone, outcomeOutOfTime, outcomeSkipped, outcomeFailed} {
		m.runs.WithLabelValues(o)
	}
	for _, r := range Reasons() {
		m.replacements.WithLabelValues(string(r))
	}
	for _, label := range errorLabels {
		m.errors.WithLabelValues(label)
	}
}

// ran counts one run.
func (m *Metrics) ran(s Summary, err error, took time.Duration) {
	if m == nil {
		return
	}
	outcome := outcomeDone
	switch {
	case err != nil:
		outcome = outcomeFailed
	case s.Skipped != "":
		outcome = outcomeSkipped
	case s.OutOfTime:
		outcome = outcomeOutOfTime
	}
	m.runs.WithLabelValues(outcome).Inc()
	if s.Skipped != "" {
		return
	}
	m.seconds.Observe(took.Seconds())
	for reason, n := range s.Replacements {
		m.replacements.WithLabelValues(reason).Add(float64(n))
	}
	for class, n := range s.Errors {
		m.errors.WithLabelValues(errorLabels[class]).Add(float64(n))
	}
	if err == nil {
		m.lastSuccess.Set(float64(s.Start.Add(took).UnixMilli()) / 1000)
	}
}

// unknownProvider is the label of providers that documents name and nobody has configured: their
// names are anybody's choice.
const unknownProvider = "unknown"

// observe sets the gauges of the fleet.
func (m *Metrics) observe(after map[string]fleet.Proxy, configured map[string]Account, s Summary) {
	if m == nil {
		return
	}
	m.proxies.Reset()
	m.conditions.Reset()
	for _, p := range after {
		provider := providerOf(p)
		if _, known := configured[provider]; !known && provider != "" {
			provider = unknownProvider
		}
		m.proxies.WithLabelValues(string(p.Status.Phase), provider).Inc()
		for _, c := range p.Status.Conditions {
			m.conditions.WithLabelValues(string(c.Type), map[bool]string{true: "true", false: "false"}[c.Status]).Inc()
		}
	}
	m.orphans.Set(float64(s.Orphans))
	m.frozen.Set(one(s.OrphansFrozen))
	for name := range configured {
		m.meltDown.WithLabelValues(name).Set(0)
	}
	for _, name := range s.MeltDown {
		m.meltDown.WithLabelValues(name).Set(1)
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
