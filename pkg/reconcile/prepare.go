package reconcile

import (
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// prepare works out what Proxies share.
func (r *run) prepare() {
	r.limits = newLimits(r.lock.Cooldowns)
	proxies, unhealthy := map[string]int{}, map[string]int{}
	for _, p := range r.proxies {
		if p.Spec.Mode == fleet.Managed && p.DeleteTime.IsZero() {
			name := providerOf(p)
			proxies[name]++
			if isUnhealthy(p) {
				unhealthy[name]++
			}
		}
	}
	for name, account := range r.Providers {
		b := r.limits.of(name)
		b.configured, b.listing, b.max = true, r.listings[name], account.MaxInstances
		b.atOnce, b.meltDown = replacements(proxies[name]), meltDown(unhealthy[name], proxies[name])
		r.tally.meltDown(name, b.meltDown)
	}
	for _, p := range r.proxies {
		name := providerOf(p)
		r.limits.note(p.Name, name, newPlanner(r.view(p, nil, nil)).holds(), p.Status.Replacing != "")
	}
	for _, o := range r.orphans() {
		r.limits.of(o.provider).held++
	}
}

// providerOf returns the provider that p's instances are at, whatever its spec has come to say.
func providerOf(p fleet.Proxy) string {
	if a := p.Status.Accepted; a != nil {
		return a.Provider
	}
	return p.Spec.Provider
}

// view is what the run knows of p.
func (r *run) view(p fleet.Proxy, facts map[string]Fact, slots *[]store.Slot) View {
	v := View{
		Now: r.now(), Proxy: p, Faults: r.faults(p), UID: r.uids[p.Name], Owner: r.Owner, Facts: facts, Slots: slots,
		Listed: r.listings[providerOf(p)].byUID[r.uids[p.Name]], SharesExit: r.exits[p.Name], Jitter: r.Random(),
	}
	if at, ok := r.catalog[p.Name]; ok {
		v.Entry = &at.entry
	}
	return v
}

// judgedDocument remembers what was found wrong with one version of a document.
type judgedDocument struct {
	version time.Time
	faults  fleet.Faults
}

// faults says what is wrong with a document. Where its status is another document's, what that one
// was accepted as does not matter.
func (r *run) faults(p fleet.Proxy) fleet.Faults {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j, ok := r.judged[p.Name]; ok && j.version.Equal(p.UpdateTime) {
		return j.faults
	}
	before := p
	if uid := p.Status.UID; uid != "" && uid != r.uids[p.Name] {
		before.Status = fleet.Status{}
	}
	faults := fleet.ValidateUpdate(before, p)
	r.judged[p.Name] = judgedDocument{p.UpdateTime, faults}
	return faults
}
