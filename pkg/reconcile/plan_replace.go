package reconcile

import (
	"errors"
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// proveTimeout is how long a successor may be unhealthy before it is given up, where the spec does
// not say how long an instance may be.
const proveTimeout = 10 * time.Minute

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
		return p.nextRow(p.s.Next)
	case i.Address == "":
		return RowNoAddress
	case p.drainingFirst(i):
		return p.drainFirst(i)
	}
	return p.replace(i)
}

// switched reports whether new leases go to the successor already.
func (p *planner) switched() bool {
	return p.s.Next != nil && p.s.Endpoint != nil && p.s.Endpoint.Incarnation == p.s.Next.Incarnation
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
	case !p.Cloud.MayReplace, p.crowded():
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

// nextRow sees to the successor until it takes over.
func (p *planner) nextRow(n *fleet.Instance) Row {
	if err := p.refusal(n); err != nil {
		return p.nextFailed(n, err)
	}
	switch p.look(n) {
	case unasked:
		return RowAsk
	case unsure:
		return RowUncertain
	case absent:
		return p.nextAbsent(n)
	case foreign:
		p.fail(nameTaken(n.Name))
		return p.dropNext(n, RowNextDropped)
	}
	switch provider.State(n.State) {
	case provider.StateUnknown:
		return RowUnknown
	case provider.StateStopping, provider.StateTerminated:
		if n.Deleting {
			if n.State == string(provider.StateTerminated) {
				p.removeInstance(n)
			}
			return RowDeleting
		}
		p.fail(stopped(n))
		return p.dropNext(n, RowNextDropped) // it is an extra from now on
	}
	switch {
	case n.Deleting:
		p.removeInstance(n)
		return RowDeleting
	case n.SpecHash != p.hash:
		return p.rejectNext(n, "the spec has changed again")
	case n.State == string(provider.StateProvisioning):
		if p.Now.Sub(born(n)) >= p.life.provision {
			p.fail(timedOut(n, p.life.provision))
			return p.rejectNext(n, "it did not come up in time")
		}
		return RowNextBooting
	}
	return p.nextProving(n)
}

func stopped(n *fleet.Instance) error {
	return &provider.Error{Class: provider.ErrTransient, Op: "launch", Name: n.Name, Zone: n.Zone, Reason: "Stopped", Err: errors.New("it stopped before it took over")}
}

// nextFailed: what certainly does not exist frees its place among the replacements under way; what
// may exist after all keeps its name.
func (p *planner) nextFailed(n *fleet.Instance, err error) Row {
	row, certain := p.refused(n, err)
	if !certain {
		return row
	}
	return p.dropNext(n, RowNextDropped)
}

func (p *planner) nextAbsent(n *fleet.Instance) Row {
	failure := p.Facts[n.Name].Failure
	switch {
	case n.Deleting:
		p.event(EventDeleted, named(n)+" is gone")
		return p.dropNext(n, RowNextDropped)
	case failure != nil:
		if row, _ := p.refused(n, failure); row == RowNextZone {
			return row
		}
		return p.dropNext(n, RowNextDropped)
	case n.State != "":
		p.fail(vanished(n.Name))
		return p.dropNext(n, RowNextDropped)
	case n.SpecHash != p.hash, p.nameIsTaken():
		return p.dropNext(n, RowNextDropped)
	}
	if row, no := p.blocked(); no {
		if row == RowFailed {
			return p.dropNext(n, RowNextDropped)
		}
		return RowReplaceBackOff
	}
	row, ok := p.mayAskAgain(n)
	if !ok {
		return row
	}
	p.order(n)
	return RowNextAgain
}

// dropNext gives up a successor. What is left of it is an extra.
func (p *planner) dropNext(n *fleet.Instance, row Row) Row {
	p.event(EventNextFailed, named(n)+" is given up")
	p.s.Next, p.s.Replacing, p.s.NextHealth = nil, "", fleet.Health{}
	return row
}

// rejectNext deletes a successor that has never served.
func (p *planner) rejectNext(n *fleet.Instance, why string) Row {
	p.event(EventNextFailed, named(n)+": "+why)
	p.removeInstance(n)
	return RowNextRejected
}

// nextProving switches to a successor that has proved itself.
func (p *planner) nextProving(n *fleet.Instance) Row {
	h := p.s.NextHealth
	if h.Incarnation != n.Incarnation {
		h = fleet.Health{}
	}
	limit := p.life.unhealthy
	if limit == 0 {
		limit = proveTimeout
	}
	switch {
	case n.Address != "" && h.Healthy:
		return p.takeOver(n)
	case n.Address == "" && p.Now.Sub(born(n)) >= p.life.provision:
		p.fail(unfit(n, "NoAddress"))
		return p.rejectNext(n, "it has no address")
	case unhealthyFor(h, p.Now) >= limit:
		p.fail(unfit(n, "Unhealthy"))
		return p.rejectNext(n, "probes through it fail: "+fleet.OutcomeText(h.Outcome))
	}
	return RowNextProving
}

func unfit(n *fleet.Instance, reason string) error {
	return &provider.Error{Class: provider.ErrTransient, Op: "replace", Name: n.Name, Zone: n.Zone, Reason: reason, Err: errors.New("the successor did not prove itself")}
}

// takeOver switches new leases to the successor. The old instance keeps the leases that it has.
func (p *planner) takeOver(n *fleet.Instance) Row {
	old := p.s.Instance
	p.s.Endpoint = &fleet.StatusEndpoint{Host: n.Address, Port: p.Proxy.EffectivePort(), Incarnation: n.Incarnation, Since: p.Now}
	p.s.Health, p.s.NextHealth, p.s.Retry = p.s.NextHealth, fleet.Health{}, p.deleteRetry()
	p.judged()
	p.event(EventSwitched, fmt.Sprintf("new leases go to %s, no longer to %s", named(n), named(old)))
	p.drain(p.s.Replacing, old.Incarnation)
	return RowSwitch
}

// drainOld waits, after the switch, for the leases on the old instance.
func (p *planner) drainOld(i *fleet.Instance) Row {
	n := p.s.Next
	switch p.look(n) {
	case unasked:
		return RowAsk
	case unsure:
		return RowUncertain
	case absent, foreign:
		return p.switchBack(i, n)
	}
	switch provider.State(n.State) {
	case provider.StateStopping, provider.StateTerminated:
		return p.switchBack(i, n)
	case provider.StateRunning:
		if n.Address != "" {
			p.serve(n)
		}
	}
	p.provisioned(true, "Running", "")
	if p.s.Drain == nil || p.s.Drain.Incarnation != i.Incarnation {
		p.drain(p.s.Replacing, i.Incarnation)
	}
	if !p.drained() {
		return RowDrainOld
	}
	return p.drainedOld(i)
}

// switchBack: the successor died while the old instance still runs, so leases go to that again.
func (p *planner) switchBack(i, n *fleet.Instance) Row {
	p.event(EventNextFailed, fmt.Sprintf("%s died after it took over; leases go to %s again", named(n), named(i)))
	p.s.Next, p.s.Replacing, p.s.Drain = nil, "", nil
	p.why = ReasonLost
	if i.Address == "" {
		p.s.Endpoint = nil
		return RowSwitchBack
	}
	p.serve(i)
	return RowSwitchBack
}
