package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

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

const (
	// fewProxies is up to how many Proxies have their slots read one by one rather than in a scan.
	fewProxies = 20
	// slotsPage is how many slots a scan reads at a time: more than one Proxy can have.
	slotsPage = 2 * fleetMaxLeases
)

// slotsForCapacity reads the slots of those Proxies whose capacity depends on them.
func (r *run) slotsForCapacity(ctx context.Context) (map[string][]store.Slot, error) {
	now := r.now()
	out := map[string][]store.Slot{}
	for name, p := range r.after {
		var old *fleet.Entry
		if at, ok := r.catalog[name]; ok {
			old = &at.entry
		}
		if r.rejected(p) == "" && needsSlots(p.Spec.MaxLeasesOrDefault(), old, now) {
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
