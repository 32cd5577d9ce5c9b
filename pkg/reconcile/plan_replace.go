package reconcile

import (
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// running sees to an instance that is up: leases go to it, unless its successor has taken over, and
// it is replaced when there is a reason to.
func (p *planner) running(i *fleet.Instance, before string) Row {
	if before != i.State {
		p.event(EventRunning, named(i)+" is up")
		if p.s.Next == nil {
			p.s.Retry = nil
		}
	}
	if p.switched() {
		return p.drainOld(i)
	}
	if i.Address == "" {
		p.loseEndpoint(i)
		p.provisioned(false, "NoAddress", named(i)+" runs and has no address that crawlers reach")
	} else {
		p.serve(i)
		p.provisioned(true, "Running", "")
	}
	switch {
	case p.s.Next != nil:
		p.endDrainOf(i)
		return p.nextRow(p.s.Next)
	case i.Address == "":
		return RowNoAddress
	case p.drainingFirst(i):
		return p.drainFirst(i)
	}
	p.endDrainOf(i)
	return p.replace(i)
}

// serve has new leases go to i. The port is that of the spec by which i was made.
func (p *planner) serve(i *fleet.Instance) {
	old := p.s.Endpoint
	if old != nil && old.Incarnation == i.Incarnation {
		if old.Host != i.Address {
			p.event(EventEndpoint, fmt.Sprintf("%s has another address: %s", named(i), i.Address))
			p.s.Endpoint = &fleet.StatusEndpoint{Host: i.Address, Port: old.Port, Incarnation: i.Incarnation, Since: p.Now}
			p.forgetHealth()
		}
		return
	}
	p.s.Endpoint = &fleet.StatusEndpoint{Host: i.Address, Port: p.Proxy.EffectivePort(), Incarnation: i.Incarnation, Since: p.Now}
	if p.s.Health.Incarnation != i.Incarnation {
		p.forgetHealth()
	}
}

// replaceReason says why a running instance is to be replaced; empty when it is not.
func (p *planner) replaceReason(i *fleet.Instance) Reason {
	h, rotate := p.s.Health, p.Proxy.RotateTime
	switch {
	case i.SpecHash != "" && i.SpecHash != p.hash:
		return ReasonSpecChanged
	case !rotate.IsZero() && !rotate.After(p.Now) && born(i).Before(rotate):
		return ReasonRotate
	case p.life.unhealthy > 0 && h.Incarnation == i.Incarnation && unhealthyFor(h, p.Now) >= p.life.unhealthy:
		return ReasonUnhealthy
	case p.life.age > 0 && p.Now.Sub(born(i)) >= p.life.age:
		return ReasonMaxAge
	}
	return ""
}

// unhealthyFor is how long the verdict has been bad; negative when it is not, or when there is none.
func unhealthyFor(h fleet.Health, now time.Time) time.Duration {
	if h.Healthy || h.UnhealthySince.IsZero() {
		return -1
	}
	return now.Sub(h.UnhealthySince)
}

// replace begins to replace i if there is a reason and nothing stands against it.
func (p *planner) replace(i *fleet.Instance) Row {
	why := p.replaceReason(i)
	if why == "" {
		p.s.Replacing, p.s.Retry = "", p.deleteRetry()
		return RowRunning
	}
	if row, no := p.blocked(); no {
		p.s.Replacing = ""
		if row == RowFailed {
			return RowReplaceFailed
		}
		return RowReplaceBackOff
	}
	zone, stocked := p.zone()
	switch {
	case why == ReasonUnhealthy && p.Cloud.MeltDown:
		p.s.Replacing = ""
		return RowMeltDown
	case !p.Cloud.MayReplace, p.crowded(""):
		return RowQueued
	case !stocked:
		p.s.Replacing = ""
		return RowReplaceBackOff
	}
	if p.s.Replacing == "" {
		p.why = why
	}
	p.s.Replacing = string(why)
	p.event(EventReplacing, fmt.Sprintf("%s: %s gets a successor", why, named(i)))
	if !p.room(1) {
		p.drain(string(why), i.Incarnation)
		return RowDrainFirst
	}
	p.s.Next = p.intend(zone)
	p.order(p.s.Next)
	return RowReplace
}

// deleteRetry keeps a back-off that is about a delete, such as that of a duplicate.
func (p *planner) deleteRetry() *fleet.Retry {
	if p.s.Retry != nil && p.s.Retry.Reason == reasonDelete {
		return p.s.Retry
	}
	return nil
}

// drainingFirst reports whether i makes way for a successor that has no room beside it.
func (p *planner) drainingFirst(i *fleet.Instance) bool {
	d := p.s.Drain
	return p.s.Replacing != "" && d != nil && d.Incarnation == i.Incarnation
}

// endDrainOf: i is not to go, so nothing is to wait for.
func (p *planner) endDrainOf(i *fleet.Instance) {
	if d := p.s.Drain; d != nil && d.Incarnation == i.Incarnation {
		p.s.Drain = nil
	}
}

// drainFirst deletes i when its leases have ended. The successor is asked for when i is gone.
func (p *planner) drainFirst(i *fleet.Instance) Row {
	if p.replaceReason(i) == "" {
		p.s.Replacing, p.s.Drain = "", nil
		p.event(EventDrainEnded, named(i)+" is as it should be again")
		return RowRunning
	}
	if !p.drained() {
		return RowDrainOld
	}
	return p.drainedOld(i)
}

// drainedOld has an instance go whose leases have ended or have had their time.
func (p *planner) drainedOld(i *fleet.Instance) Row {
	p.event(EventDeleting, named(i)+" is drained")
	p.closeEndpoint(i)
	p.removeInstance(i)
	if p.s.Endpoint == nil {
		p.provisioned(false, "Deleting", named(i)+" makes way for its successor")
	}
	return RowDrained
}
