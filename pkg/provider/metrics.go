package provider

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count and time the calls of all providers of a process.
type Metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// NewMetrics registers proxyfleet_provider_calls_total{provider,verb,class} and
// proxyfleet_provider_call_seconds{provider,verb}. verb is create, get, delete or list; class is ok,
// not_found, quota_exceeded, transient, permanent, incomplete (a listing that did not see everything)
// or cancelled (the caller gave up). It panics when reg has them already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxyfleet_provider_calls_total",
			Help: "Calls to providers by verb and class of the answer.",
		}, []string{"provider", "verb", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "proxyfleet_provider_call_seconds",
			Help: "How long calls to providers took.",
			// From the mock, in memory, to a cloud that is at the client's time limit.
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"provider", "verb"}),
	}
	reg.MustRegister(m.calls, m.seconds)
	return m
}

// WithMetrics returns p with every call counted and timed under name, which is the entry's name in
// the providers file. It changes no argument, result or error.
func WithMetrics(p Provider, name string, m *Metrics) Provider {
	return &metered{provider: p, name: name, metrics: m}
}

type metered struct {
	provider Provider
	name     string
	metrics  *Metrics
}

// observe returns what is to be called with the error when the call is over.
func (m *metered) observe(verb string) func(error) {
	begin := time.Now()
	return func(err error) {
		m.metrics.seconds.WithLabelValues(m.name, verb).Observe(time.Since(begin).Seconds())
		m.metrics.calls.WithLabelValues(m.name, verb, classLabel(err)).Inc()
	}
}

func (m *metered) Create(ctx context.Context, req CreateRequest) (Instance, error) {
	done := m.observe("create")
	got, err := m.provider.Create(ctx, req)
	done(err)
	return got, err
}

func (m *metered) Get(ctx context.Context, ref Ref) (Instance, error) {
	done := m.observe("get")
	got, err := m.provider.Get(ctx, ref)
	done(err)
	return got, err
}

func (m *metered) Delete(ctx context.Context, ref Ref) error {
	done := m.observe("delete")
	err := m.provider.Delete(ctx, ref)
	done(err)
	return err
}

func (m *metered) ListByTag(ctx context.Context, tag string) ([]Instance, error) {
	done := m.observe("list")
	got, err := m.provider.ListByTag(ctx, tag)
	done(err)
	return got, err
}

func classLabel(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	case errors.Is(err, ErrIncomplete):
		return "incomplete"
	}
	switch ClassOf(err) {
	case ErrNotFound:
		return "not_found"
	case ErrQuotaExceeded:
		return "quota_exceeded"
	case ErrPermanent:
		return "permanent"
	}
	return "transient"
}
