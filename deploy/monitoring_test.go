package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alert is one rule of deploy/monitoring/rules.yaml.
type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	data, err := os.ReadFile("monitoring/rules.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

// policy is the alert as Cloud Monitoring takes it.
func policy(t *testing.T, a alert) string {
	t.Helper()
	wait := time.Duration(0)
	if a.For != "" {
		var err error
		wait, err = time.ParseDuration(a.For)
		require.NoError(t, err)
	}
	severity := map[string]string{"page": "CRITICAL", "ticket": "WARNING"}[a.Labels["severity"]]
	require.NotEmpty(t, severity, "%s: severity must be page or ticket", a.Alert)
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // people read the queries
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(map[string]any{
		"displayName": a.Alert,
		"combiner":    "OR",
		"severity":    severity,
		"userLabels":  map[string]string{"plane": "proxyfleet"},
		"documentation": map[string]string{
			"mimeType": "text/markdown",
			"content":  a.Annotations["summary"] + ".\n\n" + a.Annotations["impact"] + "\n\nPlaybook: deploy/playbooks.md, " + a.Alert + ".",
		},
		"conditions": []any{map[string]any{
			"displayName": a.Annotations["summary"],
			"conditionPrometheusQueryLanguage": map[string]any{
				"query":              strings.Join(strings.Fields(a.Expr), " "),
				"duration":           fmt.Sprintf("%ds", int(wait.Seconds())),
				"evaluationInterval": "60s",
				"alertRule":          a.Alert,
				"ruleGroup":          "proxyfleet",
			},
		}},
	}))
	return out.String()
}

func TestAlertPoliciesAreThoseOfTheRules(t *testing.T) {
	t.Parallel()
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert+".json")
		file := filepath.Join("monitoring/policies", a.Alert+".json")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(policy(t, a)), 0o600))
		}
		data, err := os.ReadFile(file)
		if assert.NoError(t, err) {
			assert.Equal(t, policy(t, a), string(data), "go test ./deploy -run Policies -update writes it anew")
		}
	}
	entries, err := os.ReadDir("monitoring/policies")
	require.NoError(t, err)
	for _, e := range entries {
		assert.Contains(t, names, e.Name(), "a policy without a rule")
	}
}

func TestEveryAlertHasAPlaybook(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("playbooks.md")
	require.NoError(t, err)
	var headings, names []string
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(data), -1) {
		headings = append(headings, m[1])
	}
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
	}
	require.Equal(t, names, headings, "one section per alert, in the order of the rules")
}

func TestEveryAlertIsTestedBothWays(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Rules []struct {
				Name   string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	data, err := os.ReadFile("monitoring/rules_test.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, &file))
	fires, clears := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		fired := map[string]bool{}
		for _, r := range test.Rules {
			if len(r.Alerts) > 0 {
				fired[r.Name], fires[r.Name] = true, true
			} else if fired[r.Name] {
				clears[r.Name] = true
			}
		}
	}
	for _, a := range alerts(t) {
		assert.True(t, fires[a.Alert], "no test sees %s fire", a.Alert)
		assert.True(t, clears[a.Alert], "no test sees %s clear", a.Alert)
	}
}

func TestRulesPassPromtool(t *testing.T) {
	t.Parallel()
	promtool(t)
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = "monitoring"
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("promtool %s: %s", strings.Join(args, " "), out)
	}
}

// promtool skips the test where promtool is missing and cannot be installed; in CI that is a failure.
func promtool(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err == nil {
		return
	}
	ci := os.Getenv("CI") == "true"
	if ci && os.Geteuid() == 0 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, "sh", "-c", "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends prometheus").CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		if ci {
			t.Fatal("promtool is missing: it comes with Debian's package prometheus")
		}
		t.Skip("SKIPPED: promtool is missing (apt-get install prometheus): alert rules are not tested")
	}
}

func TestQueriesUseMetricsAndLabelsThatExist(t *testing.T) {
	t.Parallel()
	known := metrics(t)
	var queries []string
	for _, a := range alerts(t) {
		queries = append(queries, a.Expr)
	}
	queries = append(queries, dashboardQueries(t)...)
	used := map[string]bool{}
	for _, q := range queries {
		names := regexp.MustCompile(`proxyfleet_\w+`).FindAllString(q, -1)
		if len(names) == 0 {
			assert.Contains(t, q, "googleapis_com:", "uses no metric: %s", q)
		}
		for _, selector := range regexp.MustCompile(`(proxyfleet_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(q, -1) {
			name := baseName(selector[1])
			used[name] = true
			labels, ok := known[name]
			if !assert.True(t, ok, "no function has a metric %s: %s", selector[1], q) {
				continue
			}
			for _, label := range regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`).FindAllStringSubmatch(selector[2], -1) {
				assert.Contains(t, labels, label[1], "%s has no label %s", name, label[1])
			}
		}
		for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(q, -1) {
			for _, label := range strings.Split(by[1], ",") {
				label = strings.TrimSpace(label)
				assert.True(t, label == "le" || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(known[baseName(n)], label) }), "no metric of %s has a label %s", q, label)
			}
		}
	}
	assert.Greater(t, len(used), 15)
}

func baseName(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}

func dashboardQueries(t *testing.T) []string {
	t.Helper()
	var board struct {
		DisplayName  string
		MosaicLayout struct {
			Tiles []struct {
				Widget struct {
					Title   string
					XYChart struct {
						DataSets []struct {
							TimeSeriesQuery struct{ PrometheusQuery string }
						}
					}
				}
			}
		}
	}
	data, err := os.ReadFile("monitoring/dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &board))
	var queries []string
	for _, tile := range board.MosaicLayout.Tiles {
		assert.NotEmpty(t, tile.Widget.Title)
		assert.NotEmpty(t, tile.Widget.XYChart.DataSets, tile.Widget.Title)
		for _, d := range tile.Widget.XYChart.DataSets {
			queries = append(queries, d.TimeSeriesQuery.PrometheusQuery)
		}
	}
	require.NotEmpty(t, queries)
	return queries
}
