package reconcile

import (
	"cmp"
	"slices"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// removal takes a Proxy down whose deletion was asked for: first no new leases, then no instance,
// then no document. It comes before everything else, so a paused or faulty document goes, too.
func (p *planner) removal() Row {
	hasCloud := p.isManaged() && p.Cloud.Known
	if hasCloud && !p.Cloud.Blind && !p.identify() {
		return RowUncertain
	}
	p.s.UID = p.UID
	if d := p.s.Drain; d == nil || d.Incarnation != 0 {
		p.drain(drainDeleted, 0)
		return RowDrain
	}
	if !p.drained() {
		return RowDraining
	}
	if p.isManaged() && !p.Cloud.Known && (p.s.Instance != nil || p.s.Next != nil) {
		p.provisioned(false, "ProviderUnknown", "its instances are at a provider that is not configured any more")
		return RowStranded
	}
	if hasCloud && p.Cloud.Blind {
		return RowUncertain
	}
	if hasCloud {
		if row, down := p.takeDown(); !down {
			return row
		}
	}
	p.actions = append(p.actions, Action{Verb: Remove})
	return RowRemove
}

// isManaged goes by what was accepted last: the spec may be broken.
func (p *planner) isManaged() bool {
	if a := p.s.Accepted; a != nil {
		return a.Mode == fleet.Managed
	}
	return p.Proxy.Spec.Mode == fleet.Managed
}

// takeDown deletes every instance of the Proxy and reports whether none is left.
func (p *planner) takeDown() (row Row, down bool) {
	row, down = RowTakeDown, true
	for _, i := range []*fleet.Instance{p.s.Instance, p.s.Next} {
		if i == nil {
			continue
		}
		switch p.look(i) {
		case absent:
			p.event(EventDeleted, named(i)+" is gone")
			p.forget(i)
			continue
		case foreign:
			p.forget(i)
			continue
		case unsure:
			row = RowUncertain
		case seen:
			if !p.takeDownSeen(i) {
				row = RowUncertain
			}
		}
		down = false
	}
	return p.takeDownExtras(row, down)
}

// takeDownSeen deletes an instance that the status names. It returns false when that cannot be
// decided.
func (p *planner) takeDownSeen(i *fleet.Instance) bool {
	switch provider.State(i.State) {
	case provider.StateUnknown:
		return false
	case provider.StateStopping:
		i.Deleting = true
		return true
	}
	if !i.Deleting {
		p.event(EventDeleting, named(i)+": the Proxy is deleted")
	}
	p.loseEndpoint(i)
	p.removeInstance(i)
	return true
}

// takeDownExtras deletes what the status does not name.
func (p *planner) takeDownExtras(row Row, down bool) (Row, bool) {
	var left []provider.Instance
	for _, i := range p.owned {
		if !p.isNamed(i.Name) {
			left = append(left, i)
		}
	}
	slices.SortFunc(left, func(a, b provider.Instance) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	for _, i := range left {
		down = false
		switch {
		case i.State == provider.StateUnknown || p.Facts[i.Name].GetErr != nil:
			row = RowUncertain
		case p.confirmed(i) && i.State != provider.StateStopping:
			p.event(EventDuplicate, i.Name+": the Proxy is deleted")
			p.remove(i.Ref())
		}
	}
	return row, down
}
