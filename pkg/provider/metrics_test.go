package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answering is a provider that takes a second for every call and answers with err.
type answering struct{ err error }

func (a answering) Create(_ context.Context, req CreateRequest) (Instance, error) {
	time.Sleep(time.Second)
	return Instance{Name: req.Name}, a.err
}

func (a answering) Get(_ context.Context, ref Ref) (Instance, error) {
	time.Sleep(time.Second)
	return Instance{Name: ref.Name}, a.err
}

func (a answering) Delete(context.Context, Ref) error {
	time.Sleep(time.Second)
	return a.err
}

func (a answering) ListByTag(_ context.Context, tag string) ([]Instance, error) {
	time.Sleep(time.Second)
	return []Instance{{Owner: tag}}, a.err
}

func TestMetricsCountByClassAndPassOn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		class string
		err   error
	}{
		{"ok", nil},
		{"not_found", &Error{Class: ErrNotFound}},
		{"quota_exceeded", fmt.Errorf("create: %w", ErrQuotaExceeded)},
		{"permanent", &Error{Class: ErrPermanent}},
		{"transient", errors.New("who knows")},
		{"transient", &Error{}},
		{"incomplete", &IncompleteError{}},
		{"cancelled", context.Canceled},
		{"cancelled", fmt.Errorf("list: %w", context.DeadlineExceeded)},
	} {
		t.Run(row.class, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				p := WithMetrics(answering{row.err}, "gce-main", NewMetrics(reg))
				made, err := p.Create(t.Context(), CreateRequest{Name: "a"})
				require.ErrorIs(t, err, row.err)
				assert.Equal(t, "a", made.Name)
				got, err := p.Get(t.Context(), Ref{Name: "b"})
				require.ErrorIs(t, err, row.err)
				assert.Equal(t, "b", got.Name)
				require.ErrorIs(t, p.Delete(t.Context(), Ref{Name: "c"}), row.err)
				listed, err := p.ListByTag(t.Context(), "d")
				require.ErrorIs(t, err, row.err)
				assert.Equal(t, []Instance{{Owner: "d"}}, listed, "what an incomplete listing saw is passed on")

				want := "# HELP proxyfleet_provider_calls_total Calls to providers by verb and class of the answer.\n" +
					"# TYPE proxyfleet_provider_calls_total counter\n"
				for _, verb := range []string{"create", "delete", "get", "list"} {
					want += fmt.Sprintf("proxyfleet_provider_calls_total{class=%q,provider=\"gce-main\",verb=%q} 1\n", row.class, verb)
				}
				require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(want), "proxyfleet_provider_calls_total"))
			})
		})
	}
}

func TestMetricsTimeEveryVerb(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		p := WithMetrics(answering{}, "demo", NewMetrics(reg))
		_, _ = p.Create(t.Context(), CreateRequest{})
		_, _ = p.Get(t.Context(), Ref{})
		_ = p.Delete(t.Context(), Ref{})
		_, _ = p.ListByTag(t.Context(), "")
		families, err := reg.Gather()
		require.NoError(t, err)
		verbs := map[string]float64{}
		for _, f := range families {
			if f.GetName() != "proxyfleet_provider_call_seconds" {
				continue
			}
			for _, metric := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range metric.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				assert.Equal(t, "demo", labels["provider"])
				verbs[labels["verb"]] = metric.GetHistogram().GetSampleSum()
			}
		}
		assert.Equal(t, map[string]float64{"create": 1, "get": 1, "delete": 1, "list": 1}, verbs)
	})
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	NewMetrics(reg)
	assert.Panics(t, func() { NewMetrics(reg) })
}
