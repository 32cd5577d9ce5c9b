package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

const (
	// maxExpired is how many expired slots a run deletes: after a crash storm several runs share them.
	maxExpired = 500
	// fewProxies is up to how many Proxies have their slots read one by one rather than in a scan.
	fewProxies = 20
	// slotsPage is how many slots a scan reads at a time: more than one Proxy can have.
	slotsPage = 2 * fleetMaxLeases
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

// writeCatalog publishes what the run found.
func (r *run) writeCatalog(ctx context.Context) {
	slots, err := r.slotsForCapacity(ctx)
	if err != nil {
		r.tally.failed("", errorCatalog, err.Error())
	}
	writes, err := r.publish(ctx, r.shards, func(have map[string]place) map[string]fleet.Entry { return r.entries(have, slots) })
	r.tally.catalog(writes)
	if err != nil {
		r.tally.failed("", errorCatalog, err.Error())
	}
}

// entries derives the whole catalog from the documents and from the entries that are there.
func (r *run) entries(have map[string]place, slots map[string][]store.Slot) map[string]fleet.Entry {
	now := r.now()
	want := make(map[string]fleet.Entry, len(r.after))
	for name, p := range r.after {
		var old *fleet.Entry
		if at, ok := have[name]; ok {
			old = &at.entry
		}
		var of *[]store.Slot
		if s, ok := slots[name]; ok {
			of = &s
		}
		want[name] = entryOf(p, r.rejected(p), old, of, now)
	}
	for name, at := range have {
		if _, exists := want[name]; exists || r.removed[name] {
			continue
		}
		if e, drop := closedEntry(at.entry, now); !drop {
			want[name] = e
		}
	}
	return want
}

// rejected says what is wrong with a document; empty when nothing is. What the visit found counts,
// where there was one.
func (r *run) rejected(p fleet.Proxy) string {
	if c, ok := p.Status.Conditions.Get(fleet.ConditionAccepted); ok && !c.Status {
		return c.Message
	}
	if r.visited[p.Name] {
		return ""
	}
	return r.faults(p).Error()
}

// slotsForCapacity reads the slots of those Proxies whose capacity depends on them.
func (r *run) slotsForCapacity(ctx context.Context) (map[string][]store.Slot, error) {
	now := r.now()
	out := map[string][]store.Slot{}
	for name, p := range r.after {
		var old *fleet.Entry
		if at, ok := r.catalog[name]; ok {
			old = &at.entry
		}
		if needsSlots(p.Spec.MaxLeasesOrDefault(), old, now) {
			out[name] = nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if len(out) > fewProxies {
		return r.scanSlots(ctx, out)
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		slots, err := r.Store.ProxySlots(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read slots of %s: %w", name, err)
		}
		out[name] = slots
	}
	return out, nil
}

// scanSlots reads all slots there are and keeps those of the Proxies in out.
func (r *run) scanSlots(ctx context.Context, out map[string][]store.Slot) (map[string][]store.Slot, error) {
	from := ""
	for {
		page, err := r.Store.SlotsFrom(ctx, from, "", slotsPage)
		if err != nil {
			return nil, fmt.Errorf("scan slots: %w", err)
		}
		last := ""
		if len(page) == slotsPage {
			last = page[len(page)-1].Proxy // may go on on the next page, so that begins with it
		}
		for _, s := range page {
			if _, wanted := out[s.Proxy]; wanted && s.Proxy != last {
				out[s.Proxy] = append(out[s.Proxy], s)
			}
		}
		switch last {
		case "":
			return out, nil
		case from:
			return nil, fmt.Errorf("scan slots: %s has more than there can be", last)
		}
		from = last
	}
}

// orphans are the listed instances that no document can have asked for.
func (r *run) orphans() []orphan {
	uids, names := map[string]bool{}, map[string]bool{}
	for _, p := range r.proxies {
		uids[r.uids[p.Name]] = true
		for _, i := range []*fleet.Instance{p.Status.Instance, p.Status.Next} {
			if i != nil {
				names[i.Name] = true
			}
		}
	}
	return findOrphans(r.listings, r.Owner, uids, names)
}

// sweepOrphans deletes the orphans that are due.
func (r *run) sweepOrphans(ctx context.Context) {
	instances, incomplete := 0, map[string]bool{}
	for name, l := range r.listings {
		instances += len(l.instances)
		incomplete[name] = l.partial
	}
	found := r.orphans()
	due, known, stop := sweep(found, r.lock.Orphans, instances, incomplete, r.now())
	r.tally.foundOrphans(len(found), known, stop)
	for _, o := range due {
		if !r.inTime(ctx, r.hard) {
			return
		}
		if err := r.deleteOrphan(ctx, o); err != nil {
			r.tally.failed("", callClass(err), fmt.Sprintf("delete orphan: %v", err))
		}
	}
}

func (r *run) deleteOrphan(ctx context.Context, o orphan) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r.tally.did(didOrphan)
	return r.Providers[o.provider].Provider.Delete(ctx, o.Ref())
}

// deleteExpired removes slots whose leases are over. They would be taken over as they are; but a
// crawler's try at each of them costs.
func (r *run) deleteExpired(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	slots, err := r.Store.ExpiredSlots(ctx, r.now().Add(-skew), maxExpired)
	if err != nil {
		r.tally.failed("", errorStore, fmt.Sprintf("find expired slots: %v", err))
		return
	}
	var g errgroup.Group
	g.SetLimit(r.Concurrency)
	for _, s := range slots {
		g.Go(func() error {
			err := r.Store.DeleteSlot(ctx, s)
			if errors.Is(err, store.ErrConflict) { // taken over meanwhile, or deleted by somebody else
				return nil
			}
			if err == nil {
				r.tally.did(didExpire)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		r.tally.failed("", errorStore, fmt.Sprintf("delete expired slots: %v", err))
	}
}

// observe tells the metrics and the summary how the fleet is.
func (r *run) observe() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.fleet(r.after)
	r.Metrics.observe(r.after, r.Providers, r.tally.s)
}
