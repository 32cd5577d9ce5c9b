package reconcile

import (
	"context"
	"time"

	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/reconcile"
)

// prober hands a run's targets to the health function: those that are due, over a topic.
type prober struct{ fanout *health.Fanout }

// Start implements reconcile.Prober.
func (p prober) Start(ctx context.Context, tick time.Time, targets []reconcile.Target) (due int, wait func(context.Context) error) {
	var chosen []health.Target
	for _, t := range targets {
		// What is to be leased or to take over as soon as it is healthy is probed in every run.
		if t.Unproven || health.Due(t.Name, t.Interval, tick) {
			chosen = append(chosen, health.Target{Name: t.Name, Incarnation: t.Incarnation, Shard: t.Shard, Next: t.Next})
		}
	}
	return len(chosen), p.fanout.Start(ctx, tick, chosen)
}
