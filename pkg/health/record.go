package health

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// maxAttempts is how often a result is judged anew because the document changed meanwhile. Only
// reconcile and a repeated delivery compete for it.
const maxAttempts = 5

// The kinds of writes.
const (
	writeStatus  = "status"
	writeVerdict = "verdict"
)

// droppedGone: the document was removed.
const droppedGone Dropped = "gone"

// read returns the document of t and t's place in it; ok is false, and counted, when there is none.
func (s *Sweeper) read(ctx context.Context, t Target) (p fleet.Proxy, at seat, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p, err = s.Store.GetProxy(ctx, t.Name)
	if errors.Is(err, store.ErrNotFound) {
		s.Metrics.drop(droppedGone)
		return p, at, false, nil
	}
	if err != nil {
		return p, at, false, fmt.Errorf("read proxy %s: %w", t.Name, err)
	}
	if at, ok = find(p, t.Incarnation); !ok {
		s.Metrics.drop(DroppedForeign)
	}
	return p, at, ok, nil
}

// record judges o by the document as it is by then, and writes what that changes: first the
// document, which is the truth, then the catalog. A crash between the two is mended by the next
// delivery of the same message, or by the next run.
func (s *Sweeper) record(ctx context.Context, p fleet.Proxy, at seat, t Target, o Observation) error {
	for range maxAttempts {
		next, j := apply(p, at, o, canonical(s.Now()))
		switch {
		case j.Dropped == DroppedStale: // another delivery was faster
			s.Metrics.drop(j.Dropped)
			return s.mend(ctx, p, at, t, o.Tick)
		case j.Dropped != "":
			s.Metrics.drop(j.Dropped)
			return nil
		case !j.Changed:
			return nil
		}
		written, err := s.write(ctx, next)
		switch {
		case err == nil:
			return s.announce(ctx, written, at, t, j)
		case !errors.Is(err, store.ErrConflict):
			return fmt.Errorf("record health of %s: %w", t.Name, err)
		}
		var ok bool
		if p, at, ok, err = s.read(ctx, t); err != nil || !ok {
			return err
		}
	}
	return fmt.Errorf("record health of %s: %w %d times", t.Name, store.ErrConflict, maxAttempts)
}

func (s *Sweeper) write(ctx context.Context, p fleet.Proxy) (fleet.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p, err := s.Store.WriteStatus(ctx, p, store.HealthFields)
	if err == nil {
		s.Metrics.wrote(writeStatus)
	}
	return p, err
}

// announce tells of a verdict that flipped: the log, and at once the catalog that leases come from.
func (s *Sweeper) announce(ctx context.Context, p fleet.Proxy, at seat, t Target, j Judgement) error {
	if !j.Flipped {
		return nil
	}
	s.Metrics.flipped(j.Health.Healthy)
	s.Log.InfoContext(ctx, "verdict flipped", "proxy", t.Name, "incarnation", t.Incarnation, "next", at.next,
		"healthy", j.Health.Healthy, "outcome", string(j.Health.Outcome), "detail", j.Health.Detail, "latencyMs", j.Health.LatencyMs)
	if at.next {
		return nil // no lease goes there yet
	}
	return s.setVerdict(ctx, p, t)
}

// mend repeats what an earlier delivery of the same tick may not have come to: it recorded a flip in
// the document, and nothing shows whether the catalog has heard of it.
func (s *Sweeper) mend(ctx context.Context, p fleet.Proxy, at seat, t Target, tick time.Time) error {
	h := p.Status.Health
	c, _ := p.Status.Conditions.Get(fleet.ConditionHealthy)
	if at.next || !h.Tick.Equal(tick) || !c.LastTransitionTime.Equal(h.LastProbeTime) {
		return nil
	}
	return s.setVerdict(ctx, p, t)
}

func (s *Sweeper) setVerdict(ctx context.Context, p fleet.Proxy, t Target) error {
	if t.Shard < 0 {
		return nil // the next run takes it up
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := s.Store.SetVerdict(ctx, t.Shard, t.Name, fleet.VerdictOf(p))
	switch {
	case errors.Is(err, store.ErrNotFound): // the catalog was rebuilt; the next run takes it up
		return nil
	case err != nil:
		return fmt.Errorf("set verdict of %s: %w", t.Name, err)
	}
	s.Metrics.wrote(writeVerdict)
	return nil
}
