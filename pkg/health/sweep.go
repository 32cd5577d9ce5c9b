package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/secret"
	"crawl.example.com/proxyfleet/pkg/store"
)

// MaxProbes is how many probes one process makes at a time. A silent proxy holds its place for its
// whole timeout and costs nothing meanwhile; all others together must not crowd two CPUs so much
// that good proxies look slow.
const MaxProbes = 256

// storeTimeout bounds one call of the store, with the retries of its client.
const storeTimeout = 15 * time.Second

// documents is what a sweep needs of the store.
type documents interface {
	GetProxy(ctx context.Context, name string) (fleet.Proxy, error)
	WriteStatus(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error)
	SetVerdict(ctx context.Context, shard int, name string, v fleet.Verdict) error
}

// Deps are what a Sweeper works with. All are needed.
type Deps struct {
	Store   documents
	Secrets secret.Resolver // that remembers: it is asked for every probe
	Prober  *Prober
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// Sweeper probes and judges the targets of messages. It is safe for concurrent use, and meant to
// live as long as the process: it remembers which targets are down.
type Sweeper struct {
	Deps
	control *control
	warned  tickOnce
	places  chan struct{}
}

// NewSweeper makes a Sweeper.
func NewSweeper(d Deps) *Sweeper {
	return &Sweeper{Deps: d, control: newControl(d.Prober, d.Now), places: make(chan struct{}, MaxProbes)}
}

// Sweep probes all targets of m at once and records what they show. It can be repeated: what has been
// counted for a tick is not counted again. Unhealthy proxies are no error; the error says which
// targets could not be read, probed in time or recorded, and another try may mend it.
func (s *Sweeper) Sweep(ctx context.Context, m Message) error {
	errs := make([]error, len(m.Proxies))
	var wg sync.WaitGroup
	for i, t := range m.Proxies {
		wg.Go(func() { errs[i] = s.guarded(ctx, m.Tick, t) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err != nil {
		s.Metrics.message(messageFailed)
		return err
	}
	s.Metrics.message(messageDone)
	return nil
}

// guarded visits one target. A panic over one document must not end the process, which would leave
// the others unprobed, and again with every delivery.
func (s *Sweeper) guarded(ctx context.Context, tick time.Time, t Target) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.ErrorContext(ctx, "panic", "proxy", t.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("probe %s: panic; the log has the details", t.Name)
		}
	}()
	return s.visit(ctx, tick, t)
}

// visit probes one target and records the result.
func (s *Sweeper) visit(ctx context.Context, tick time.Time, t Target) error {
	p, at, ok, err := s.read(ctx, t)
	if err != nil || !ok {
		return err
	}
	if h := at.health(&p); h.Incarnation == t.Incarnation && !tick.After(h.Tick) {
		s.Metrics.drop(DroppedStale)
		return s.mend(ctx, p, at, t, tick)
	}
	r, err := s.observe(ctx, p, at, tick)
	if err != nil {
		return fmt.Errorf("probe %s: %w", t.Name, err)
	}
	s.Metrics.probed(r)
	return s.record(ctx, p, at, t, Observation{Result: r, Incarnation: t.Incarnation, Tick: tick})
}

// observe probes when there is a place for it. Its error is ctx's: an interrupted probe shows nothing.
func (s *Sweeper) observe(ctx context.Context, p fleet.Proxy, at seat, tick time.Time) (Result, error) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	s.Metrics.inFlight(1)
	defer s.Metrics.inFlight(-1)
	r := s.probe(ctx, p, at, tick)
	return r, ctx.Err()
}

// probe probes p and, when that fails in a way that may be the target's fault, looks at the target.
func (s *Sweeper) probe(ctx context.Context, p fleet.Proxy, at seat, tick time.Time) Result {
	check := p.Spec.HealthCheckOrDefault()
	credentials, fault := s.credentials(ctx, p, tick)
	if fault != nil {
		return fault.result()
	}
	r := s.Prober.Probe(ctx, Request{Host: at.host, Port: at.port, Credentials: credentials, Check: check})
	if r.Outcome == fleet.OutcomeOK || r.Outcome == fleet.OutcomeInconclusive || r.Certain {
		return r
	}
	down, first, err := s.control.down(ctx, tick, check)
	if err != nil || !down {
		return r
	}
	if first {
		s.Metrics.judgeDown.Inc()
		s.Log.WarnContext(ctx, "health check target is down for everyone: no verdict changes",
			"url", redacted(check.URL), "tick", tick)
	}
	return Result{Outcome: fleet.OutcomeInconclusive, Detail: "the target is down", Latency: r.Latency}
}

// redacted is a URL without what may be secret in it.
func redacted(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
