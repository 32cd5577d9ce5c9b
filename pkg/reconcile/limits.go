package reconcile

import (
	"maps"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// limits keeps what Proxies share: the caps of their providers, and the zones without stock. Plan is
// called under its mutex, so that no two decisions take the same place.
type limits struct {
	mu        sync.Mutex
	providers map[string]*budget
	holds     map[string]int // instances that may exist, by Proxy
	cooling   map[string]time.Time
}

// budget is what one provider allows.
type budget struct {
	max        int // instances; 0 means any number
	held       int // instances that may exist
	replacing  map[string]bool
	atOnce     int // replacements
	meltDown   bool
	listing    listing
	configured bool
}

func newLimits(cooling map[string]time.Time) *limits {
	l := &limits{providers: map[string]*budget{}, holds: map[string]int{}, cooling: map[string]time.Time{}}
	maps.Copy(l.cooling, cooling)
	return l
}

// of returns the budget of a provider, which may not be configured.
func (l *limits) of(provider string) *budget {
	b := l.providers[provider]
	if b == nil {
		b = &budget{replacing: map[string]bool{}}
		l.providers[provider] = b
	}
	return b
}

// decide plans for v with what provider allows now, and takes what the decision needs.
func (l *limits) decide(v View, provider string) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(provider)
	name := v.Proxy.Name
	v.Cloud = Cloud{
		Known: b.configured, Blind: b.listing.blind, Partial: b.listing.partial, BrokeOff: b.listing.brokeOff, Silent: b.listing.silent, Max: b.max, Others: b.held - l.holds[name],
		MayReplace: b.replacing[name] || len(b.replacing) < b.atOnce, MeltDown: b.meltDown, Cooling: map[string]time.Time{},
	}
	for _, zone := range append(v.Proxy.Spec.ZonesInOrder(), "") {
		if until, cools := l.cooling[provider+"/"+zone]; cools {
			v.Cloud.Cooling[zone] = until
		}
	}
	d := Plan(v)
	l.note(name, provider, d.Holds, d.Status.Replacing != "")
	for zone, until := range d.Cool {
		l.cooling[provider+"/"+zone] = until
	}
	return d
}

// note takes down what a Proxy takes of its provider's budget.
func (l *limits) note(name, provider string, holds int, replacing bool) {
	b := l.of(provider)
	b.held += holds - l.holds[name]
	l.holds[name] = holds
	if replacing {
		b.replacing[name] = true
	} else {
		delete(b.replacing, name)
	}
}

// stillCooling returns the zones that are left alone after now.
func (l *limits) stillCooling(now time.Time) map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := maps.Clone(l.cooling)
	maps.DeleteFunc(out, func(_ string, until time.Time) bool { return !now.Before(until) })
	return out
}

// replacements is how many of a provider's Proxies may be replaced at once: a tenth, at least one.
func replacements(proxies int) int { return max(1, proxies/10) }

// meltDown reports whether so many of a provider's Proxies are unhealthy that the cause must be what
// they have in common, the target or the network: more than two fifths, and more than two.
func meltDown(unhealthy, proxies int) bool { return unhealthy > 2 && 5*unhealthy > 2*proxies }

// isUnhealthy reports whether p's current instance has a bad verdict.
func isUnhealthy(p fleet.Proxy) bool {
	e, h := p.Status.Endpoint, p.Status.Health
	return e != nil && h.Incarnation == e.Incarnation && !h.Healthy && !h.UnhealthySince.IsZero()
}

// frozen reports whether so many instances are orphans that the documents must be what is missing:
// more than a fifth of all instances, and more than three.
func frozen(orphans, instances int) bool { return orphans > 3 && 5*orphans > instances }
