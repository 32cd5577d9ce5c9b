package reconcile

import (
	"crawl.example.com/proxyfleet/pkg/fleet"
)

// forget takes an instance out of the status.
func (p *planner) forget(i *fleet.Instance) {
	p.loseEndpoint(i)
	if p.s.Retry != nil && p.s.Retry.Reason == reasonDelete {
		p.s.Retry = nil
	}
	if p.s.Instance == i {
		p.s.Instance = nil
	} else {
		p.s.Next = nil
	}
}

// closeEndpoint: no new leases go to i.
func (p *planner) closeEndpoint(i *fleet.Instance) {
	if e := p.s.Endpoint; e != nil && e.Incarnation == i.Incarnation {
		p.s.Endpoint = nil
	}
}

// loseEndpoint: leases on i are of no use any more, and nobody waits for them.
func (p *planner) loseEndpoint(i *fleet.Instance) {
	p.closeEndpoint(i)
	if d := p.s.Drain; d != nil && d.Incarnation == i.Incarnation {
		p.s.Drain = nil
	}
}

// promote makes the successor the current instance.
func (p *planner) promote() {
	p.s.Instance, p.s.Next, p.s.Replacing = p.s.Next, nil, ""
	if p.s.NextHealth.Incarnation == p.s.Instance.Incarnation && p.s.Health.Incarnation != p.s.Instance.Incarnation {
		p.s.Health = p.s.NextHealth
		p.judged()
	}
	p.s.NextHealth = fleet.Health{}
}

// judged states the verdict that comes with the health which was just taken over.
func (p *planner) judged() {
	if !p.s.Health.Healthy {
		p.unproven()
		return
	}
	p.condition(fleet.Condition{Type: fleet.ConditionHealthy, Status: true, Reason: "ProbesPass"})
}
