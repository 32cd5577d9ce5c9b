package reconcile

import (
	"fmt"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// switched reports whether new leases go to the successor already.
func (p *planner) switched() bool {
	return p.s.Next != nil && p.s.Endpoint != nil && p.s.Endpoint.Incarnation == p.s.Next.Incarnation
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
