package reconcile

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

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
	instances, incomplete := map[string]bool{}, map[string]bool{} // by name: two providers may share an account
	for name, l := range r.listings {
		incomplete[name] = l.partial
		for _, i := range l.instances {
			instances[i.Name] = true
		}
	}
	found := r.orphans()
	due, known, stop := sweep(found, r.lock.Orphans, len(instances), incomplete, r.now())
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

// maxExpired is how many expired slots a run deletes: after a crash storm several runs share them.
const maxExpired = 500

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
