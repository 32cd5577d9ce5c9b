package reconcile

import (
	"errors"
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// nextRow sees to the successor until it takes over.
func (p *planner) nextRow(n *fleet.Instance) Row {
	if n.Incarnation <= p.s.Instance.Incarnation {
		return p.dropNext(n, RowNextDropped) // no successor: it may have leases
	}
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
	switch {
	case row == RowFull:
		return p.dropNext(n, RowFull)
	case !ok:
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

// proveTimeout is how long a successor may be unhealthy before it is given up, where the spec does
// not say how long an instance may be.
const proveTimeout = 10 * time.Minute

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
