package app_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/lease"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/reconcile"
)

// metric is one of the plane's, as it describes itself.
type metric struct {
	name, kind, help, function string
	labels                     []string
}

// recorder is a registry that notes what is registered.
type recorder struct {
	prometheus.Registerer
	function string
	metrics  *[]metric
}

func (r recorder) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		descs := make(chan *prometheus.Desc, 16)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			*r.metrics = append(*r.metrics, read(d, c, r.function))
		}
	}
	r.Registerer.MustRegister(cs...)
}

func (r recorder) Register(c prometheus.Collector) error {
	r.MustRegister(c)
	return nil
}

var descText = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]*)", unit: "[^"]*", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

func read(d *prometheus.Desc, c prometheus.Collector, function string) metric {
	parts := descText.FindStringSubmatch(d.String())
	if parts == nil {
		return metric{name: d.String()}
	}
	m := metric{name: parts[1], help: parts[2], kind: kindOf(c), function: function}
	if parts[3] != "" {
		m.labels = strings.Split(parts[3], ",")
	}
	return m
}

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case prometheus.Gauge, *prometheus.GaugeVec, // a gauge is a counter, too, by its methods
		*lease.Metrics: // what it collects itself are counts read from the store
		return "gauge"
	case prometheus.Counter, *prometheus.CounterVec:
		return "counter"
	case prometheus.Histogram, *prometheus.HistogramVec:
		return "histogram"
	}
	return "unknown"
}

func allMetrics() []metric {
	var all []metric
	reg := prometheus.NewRegistry() // one for all: names of two functions must not clash
	reconcile.NewMetrics(recorder{reg, "reconcile", &all})
	provider.NewMetrics(recorder{reg, "reconcile", &all})
	health.NewMetrics(recorder{reg, "health", &all})
	lease.NewMetrics(recorder{reg, "lease", &all})
	return all
}

func unitOf(m metric) string {
	switch {
	case strings.HasSuffix(m.name, "_timestamp_seconds"):
		return "Unix time in seconds"
	case strings.HasSuffix(m.name, "_seconds"):
		return "seconds"
	}
	return "count"
}

// table is what the README says of the metrics.
func table(all []metric) string {
	var b strings.Builder
	b.WriteString("| function | metric | type, unit | labels | meaning |\n|---|---|---|---|---|\n")
	for _, m := range all {
		labels := "none"
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s, %s | %s | %s |\n", m.function, m.name, m.kind, unitOf(m), labels, m.help)
	}
	return b.String()
}

const (
	readme     = "../../README.md"
	tableBegin = "<!-- metrics -->\n"
	tableEnd   = "<!-- /metrics -->"
)

func TestReadmeNamesEveryMetric(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), tableBegin)
	require.True(t, ok, "README.md needs a line %q", tableBegin)
	have, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "README.md needs a line %q", tableEnd)
	want := table(allMetrics())
	if os.Getenv("UPDATE_README") != "" {
		require.NoError(t, os.WriteFile(readme, []byte(before+tableBegin+want+tableEnd+after), 0o644)) //nolint:gosec // a public file
		return
	}
	require.Equal(t, want, have, "UPDATE_README=1 go test ./pkg/app writes it anew")
}

func TestMetricsKeepToTheirConventions(t *testing.T) {
	t.Parallel()
	// Labels have few values, whoever calls: names of proxies, leases, hosts and holders are none.
	bounded := []string{"class", "code", "condition", "kind", "outcome", "passed", "phase", "provider", "reason", "result", "status", "to", "verb", "verdict"}
	seen := map[string]bool{}
	for _, m := range allMetrics() {
		assert.Regexp(t, `^proxyfleet_[a-z_]+$`, m.name)
		assert.NotEqual(t, "unknown", m.kind, m.name)
		assert.Regexp(t, `^[A-Z0-9].*\.$`, m.help, m.name)
		assert.False(t, seen[m.name], "%s twice", m.name)
		seen[m.name] = true
		assert.Equal(t, m.kind == "counter", strings.HasSuffix(m.name, "_total"), "%s: counters, and only they, end in _total", m.name)
		if m.kind == "histogram" {
			assert.True(t, strings.HasSuffix(m.name, "_seconds"), "%s: its unit", m.name)
		}
		for _, l := range m.labels {
			assert.True(t, slices.Contains(bounded, l), "%s: is label %q bounded?", m.name, l)
		}
	}
	require.NotEmpty(t, seen)
}
