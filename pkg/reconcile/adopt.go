package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// ours returns the instances of this Proxy that exist as far as anybody can tell, by name: what was
// listed or seen directly and bears our owner tag and uid.
func (p *planner) ours() map[string]provider.Instance {
	owned := map[string]provider.Instance{}
	for _, i := range p.Listed {
		if f := p.Facts[i.Name]; !f.Absent && p.isOurs(i) {
			owned[i.Name] = i
		}
	}
	for name, f := range p.Facts {
		if f.Seen != nil && p.isOurs(*f.Seen) {
			owned[name] = *f.Seen
		}
	}
	return owned
}

func (p *planner) isOurs(i provider.Instance) bool { return i.Owner == p.Owner && i.UID == p.UID }

// holds counts the instances of this Proxy that may exist: those that are named, seen or, after a
// status was lost, suspected.
func (p *planner) holds() int {
	names := map[string]bool{}
	for name := range p.owned {
		names[name] = true
	}
	for _, i := range []*fleet.Instance{p.s.Instance, p.s.Next} {
		if i != nil {
			names[i.Name] = true
		}
	}
	if p.Proxy.Status.UID == "" {
		for _, ref := range p.suspects() {
			names[ref.Name] = true
		}
	}
	return len(names)
}

// room reports whether n more instances may exist at the provider.
func (p *planner) room(n int) bool {
	return p.Cloud.Max == 0 || p.Cloud.Others+p.holds()+n <= p.Cloud.Max
}

// crowded reports whether beside the named instance as many may exist as a Proxy may ever have: the
// current one and its successor.
func (p *planner) crowded(beside string) bool {
	exist := map[string]bool{}
	for name := range p.owned {
		exist[name] = name != beside
	}
	for _, i := range []*fleet.Instance{p.s.Instance, p.s.Next} {
		if i != nil && !p.Facts[i.Name].Absent {
			exist[i.Name] = i.Name != beside
		}
	}
	n := 0
	for _, counts := range exist {
		if counts {
			n++
		}
	}
	return n >= 2
}

// identify gives the Proxy its uid. A Proxy that the catalog knows and that has no uid has lost its
// status: what instances it has is asked for by name, since a listing may lag behind. It returns
// false while that cannot be found out.
func (p *planner) identify() bool {
	if p.s.UID == "" {
		if p.Entry != nil && p.Cloud.Partial {
			return false
		}
		for _, ref := range p.suspects() {
			p.want(ref)
		}
		for _, f := range p.Facts {
			if f.GetErr != nil {
				return false
			}
		}
	}
	p.s.UID = p.UID
	for _, i := range p.owned {
		p.s.Incarnation = max(p.s.Incarnation, i.Incarnation)
	}
	return true
}

// suspects names the instances that a Proxy without a status may have and that nobody has looked at
// yet: those around the incarnation that leases go to, around the one below which they are drained, and
// around the highest that is seen. A listing may show any of these and hide the others.
func (p *planner) suspects() []provider.Ref {
	if p.Entry == nil {
		return nil
	}
	highest := int64(0)
	for _, i := range p.owned {
		highest = max(highest, i.Incarnation)
	}
	var around []int64
	for _, known := range []int64{p.Entry.Incarnation, p.Entry.DrainingBelow, highest} {
		for n := known - 1; n <= known+2; n++ {
			around = append(around, n)
		}
	}
	slices.Sort(around)
	var refs []provider.Ref
	for _, n := range slices.Compact(around) {
		if n < 1 {
			continue
		}
		name := p.nameOf(n)
		f := p.Facts[name]
		if _, seen := p.owned[name]; !seen && f.Seen == nil && !f.Absent && f.GetErr == nil {
			refs = append(refs, provider.Ref{Name: name})
		}
	}
	return refs
}

// adopt makes the highest incarnation that is alive the current instance when none is recorded. A
// listing alone is not believed: it may show what is gone.
func (p *planner) adopt() {
	if p.s.Instance == nil && p.s.Next != nil {
		p.promote()
	}
	if p.s.Instance != nil {
		return
	}
	best := provider.Instance{}
	for _, i := range p.owned {
		if isAlive(i) && !p.Facts[i.Name].Deleted && i.Incarnation > best.Incarnation {
			best = i
		}
	}
	if best.Name == "" || !p.confirmed(best) {
		return
	}
	p.s.Instance = &fleet.Instance{Name: best.Name, Incarnation: best.Incarnation, Zone: best.Zone, SpecHash: best.SpecHash, CreateTime: canonical(best.CreateTime)}
	if best.CreateTime.IsZero() {
		p.s.Instance.CreateTime = p.Now // else it would look old beyond every limit
	}
	p.event(EventAdopted, named(p.s.Instance)+" was found to be ours")
}

// confirmed reports whether the instance has been looked at directly, and asks for that otherwise.
func (p *planner) confirmed(i provider.Instance) bool {
	f := p.Facts[i.Name]
	if f.Seen == nil && f.GetErr == nil {
		p.want(i.Ref())
	}
	return f.Seen != nil
}

func isAlive(i provider.Instance) bool {
	return i.State == provider.StateProvisioning || i.State == provider.StateRunning || i.State == provider.StateUnknown
}

// extras has every instance of ours go that the status does not name: a stopped one at once, one
// that runs as soon as no lease can be on it.
func (p *planner) extras() {
	var left []provider.Instance
	for _, i := range p.owned {
		if !p.isNamed(i.Name) && !p.Facts[i.Name].Deleted && i.State != provider.StateUnknown && i.State != provider.StateStopping {
			left = append(left, i)
		}
	}
	slices.SortFunc(left, func(a, b provider.Instance) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	for _, i := range left {
		if p.confirmed(i) && (i.State == provider.StateTerminated || p.drainedExtra(i)) {
			p.event(EventDuplicate, fmt.Sprintf("%s was %s and nobody's", i.Name, i.State))
			p.remove(i.Ref())
		}
	}
	p.endExtraDrain()
}

func (p *planner) isNamed(name string) bool {
	return p.s.Instance != nil && p.s.Instance.Name == name || p.s.Next != nil && p.s.Next.Name == name
}

// drainedExtra waits for the leases of one duplicate at a time.
func (p *planner) drainedExtra(i provider.Instance) bool {
	if p.s.Drain == nil {
		p.drain(drainDuplicate, i.Incarnation)
	}
	return p.s.Drain.Incarnation == i.Incarnation && p.drained()
}

// endExtraDrain ends the wait for a duplicate that has gone, or is on its way.
func (p *planner) endExtraDrain() {
	d := p.s.Drain
	if d == nil || d.Reason != drainDuplicate {
		return
	}
	if i, exists := p.owned[p.nameOf(d.Incarnation)]; !exists || i.State == provider.StateStopping {
		p.s.Drain = nil
	}
}

// recallExtra looks at a duplicate that is waited for when no listing shows it: it counts while it exists.
func (p *planner) recallExtra() {
	d := p.s.Drain
	if d == nil || d.Reason != drainDuplicate {
		return
	}
	name := p.nameOf(d.Incarnation)
	_, exists := p.owned[name]
	switch f := p.Facts[name]; {
	case exists || f.Absent || f.Seen != nil:
	case f.GetErr != nil: // who knows; so it counts
		p.owned[name] = provider.Instance{Name: name, Incarnation: d.Incarnation, State: provider.StateUnknown, Owner: p.Owner, UID: p.UID}
	default:
		p.want(provider.Ref{Name: name})
	}
}

func (p *planner) nameOf(incarnation int64) string { return provider.InstanceName(p.UID, incarnation) }
