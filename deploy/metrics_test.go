package deploy

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/lease"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/reconcile"
)

// A Desc shows what it is made of only as text.
var desc = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)

// metrics returns the labels of every metric that the functions have, by its name.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reconcile.NewMetrics(reg)
	provider.NewMetrics(reg)
	health.NewMetrics(reg)
	lease.NewMetrics(reg)
	ch := make(chan *prometheus.Desc)
	go func() {
		reg.Describe(ch)
		close(ch)
	}()
	out := map[string][]string{}
	for d := range ch {
		m := desc.FindStringSubmatch(d.String())
		require.NotNil(t, m, d.String())
		out[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	return out
}
