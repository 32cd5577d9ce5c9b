package reconcile

import (
	"errors"
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// instanceRow finds the row for the current instance.
func (p *planner) instanceRow() Row {
	i := p.s.Instance
	if i == nil {
		return p.create()
	}
	if err := p.refusal(i); err != nil {
		return p.createFailed(i, err)
	}
	before := i.State
	switch p.look(i) {
	case unasked:
		return RowAsk
	case unsure:
		return RowUncertain
	case absent:
		return p.instanceAbsent(i)
	case foreign:
		return p.instanceForeign(i)
	}
	switch provider.State(i.State) {
	case provider.StateUnknown:
		return RowUnknown
	case provider.StateStopping, provider.StateTerminated:
		if !i.Deleting {
			return p.succeed(i, ReasonStopped)
		}
		if i.State == string(provider.StateTerminated) {
			p.removeInstance(i)
		}
		return RowDeleting
	}
	switch {
	case i.Deleting:
		p.closeEndpoint(i)
		p.removeInstance(i)
		return RowDeleting
	case i.State == string(provider.StateProvisioning):
		return p.provisioning(i)
	}
	return p.running(i, before)
}

func (p *planner) createFailed(i *fleet.Instance, err error) Row {
	row, _ := p.refused(i, err)
	if row != RowNextZone {
		p.waiting()
	}
	return row
}

// instanceAbsent decides by what was known of an instance before it was found missing.
func (p *planner) instanceAbsent(i *fleet.Instance) Row {
	failure := p.Facts[i.Name].Failure
	switch {
	case i.Deleting:
		return p.instanceGone(i)
	case failure != nil:
		return p.createFailed(i, failure)
	case i.State == "":
		return p.createAgain(i)
	case i.State == string(provider.StateProvisioning):
		return p.createFailed(i, vanished(i.Name))
	}
	return p.succeed(i, ReasonLost)
}

func vanished(name string) error {
	return &provider.Error{Class: provider.ErrTransient, Op: "launch", Name: name, Reason: "Vanished", Err: errors.New("it was there and is gone before it came up")}
}

// instanceForeign: the name is not ours to use or to delete.
func (p *planner) instanceForeign(i *fleet.Instance) Row {
	if i.State != "" {
		return p.succeed(i, ReasonLost)
	}
	switch {
	case p.latched():
	case p.nameIsTaken(): // another spec, or somebody's wish, has opened the latch: try another name
		p.s.Instance, p.s.Retry = nil, nil
		return p.create()
	default:
		p.fail(nameTaken(i.Name))
	}
	p.waiting()
	return RowConflict
}

func nameTaken(name string) error {
	return &provider.Error{Class: provider.ErrPermanent, Op: "create", Name: name, Reason: provider.ReasonNameConflict, Err: errors.New("the name is taken by an instance that is not ours")}
}

// instanceGone ends a deletion: the successor takes over, or the next incarnation follows.
func (p *planner) instanceGone(i *fleet.Instance) Row {
	p.event(EventDeleted, named(i)+" is gone")
	p.forget(i)
	if p.s.Next != nil {
		p.promote()
		return p.instanceRow()
	}
	return p.create()
}

// succeed gives up an instance that serves nobody any more: the successor takes over if there is one
// already, else the next incarnation is asked for. What is left of the old one is an extra.
func (p *planner) succeed(i *fleet.Instance, why Reason) Row {
	if !p.switched() { // else its successor serves already
		p.why = why
	}
	if why == ReasonLost {
		p.event(EventLost, named(i)+" does not exist any more")
	} else {
		p.event(EventStopped, fmt.Sprintf("%s is %s and nobody here stopped it", named(i), i.State))
	}
	p.forget(i)
	if p.s.Next != nil {
		p.promote()
		return p.instanceRow()
	}
	row := p.create()
	if row == RowCreate {
		return RowSucceeded
	}
	return row
}

// provisioning waits for an instance to come up.
func (p *planner) provisioning(i *fleet.Instance) Row {
	tooLate := p.Now.Sub(born(i)) >= p.life.provision
	switch {
	case (tooLate || i.SpecHash != p.hash) && !p.confirmed(p.owned[i.Name]):
		return RowUncertain // it may be up, and leased, by now
	case i.SpecHash != p.hash:
		p.event(EventDeleting, named(i)+": the spec changed before it was up")
		p.removeInstance(i)
		p.provisioned(false, "Deleting", "the spec changed before the instance was up")
		return RowOutdated
	case tooLate:
		p.fail(timedOut(i, p.life.provision))
		p.event(EventDeleting, named(i)+" did not come up in time")
		p.removeInstance(i)
		p.waiting()
		return RowProvisionTimeout
	}
	p.provisioned(false, "Provisioning", named(i)+" is coming up")
	return RowProvisioning
}

func timedOut(i *fleet.Instance, limit time.Duration) error {
	return &provider.Error{Class: provider.ErrTransient, Op: "launch", Name: i.Name, Zone: i.Zone, Reason: EventTimeout, Err: fmt.Errorf("not running after %s", limit)}
}

// born is when the instance was asked for, or made where nobody remembers asking.
func born(i *fleet.Instance) time.Time {
	if i.IntentTime.After(i.CreateTime) {
		return i.IntentTime
	}
	return i.CreateTime
}
