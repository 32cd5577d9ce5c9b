package health

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAllSeriesExistFromTheBeginning(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	NewMetrics(reg)
	for name, want := range map[string]int{
		"proxyfleet_probes_total":                14, // a series per outcome, so that a rate sees the first event
		"proxyfleet_verdict_flips_total":         2,
		"proxyfleet_probe_results_dropped_total": 4,
		"proxyfleet_health_writes_total":         2,
		"proxyfleet_probe_messages_total":        3,
		"proxyfleet_judge_down_total":            1,
		"proxyfleet_probes_in_flight":            1,
	} {
		got, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
	}
}
