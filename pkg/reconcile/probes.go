package reconcile

import (
	"context"
	"time"
)

// startProbes hands the probes of this run to the Prober and returns what collects its results.
func (r *run) startProbes(ctx context.Context) (collect func(context.Context) error) {
	if r.Prober == nil {
		return func(context.Context) error { return nil }
	}
	due, wait := r.Prober.Start(ctx, r.tick, r.targets())
	r.tally.due(due)
	return wait
}

// targets are the instances that could be probed, by what the documents said when the run began.
func (r *run) targets() []Target {
	var out []Target
	for _, p := range r.proxies {
		if len(r.faults(p)) > 0 || !p.DeleteTime.IsZero() {
			continue
		}
		t := Target{Name: p.Name, Shard: -1, Interval: time.Duration(p.Spec.HealthCheckOrDefault().IntervalSeconds) * time.Second}
		if at, ok := r.catalog[p.Name]; ok {
			t.Shard = at.shard
		}
		if e := p.Status.Endpoint; e != nil {
			t.Incarnation = e.Incarnation
			t.Unproven = p.Status.Health.LastProbeTime.IsZero() || p.Status.Health.Incarnation != e.Incarnation
			out = append(out, t)
		}
		if n := p.Status.Next; n != nil && n.Address != "" && !n.Deleting && (p.Status.Endpoint == nil || p.Status.Endpoint.Incarnation != n.Incarnation) {
			t.Incarnation, t.Next, t.Unproven = n.Incarnation, true, true
			out = append(out, t)
		}
	}
	return out
}
