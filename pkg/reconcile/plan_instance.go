package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// sight is what is known of an instance that the status names.
type sight int

const (
	unasked sight = iota // not listed, which shows nothing
	unsure               // the cloud did not answer
	absent               // it does not exist
	foreign              // somebody else's bears its name
	seen
)

// look finds out what is known of i, asks for what is not, and takes over what was seen.
func (p *planner) look(i *fleet.Instance) sight {
	f := p.Facts[i.Name]
	switch {
	case f.Seen != nil && !p.isOurs(*f.Seen):
		return foreign
	case f.Seen == nil && f.Absent:
		return absent
	case f.Seen == nil && f.GetErr != nil:
		return unsure
	}
	found, ok := p.owned[i.Name]
	if !ok && (p.Cloud.BrokeOff || p.Cloud.Silent[i.Zone]) && i.State == string(provider.StateRunning) && !i.Deleting {
		return unsure // the cloud has trouble enough, and nothing waits for this answer
	}
	if !ok {
		p.ask.Get = append(p.ask.Get, provider.Ref{Name: i.Name, Zone: i.Zone, Operation: i.Operation})
		return unasked
	}
	if isBehind(found.State, provider.State(i.State)) && !p.confirmed(found) {
		return unsure // listings can be older than what was seen before
	}
	i.State, i.Address = string(found.State), found.Address
	if found.Zone != "" {
		i.Zone = found.Zone
	}
	if found.SpecHash != "" {
		i.SpecHash = found.SpecHash
	}
	if found.Operation != "" || found.State == provider.StateRunning {
		i.Operation = found.Operation
	}
	if !found.CreateTime.IsZero() {
		i.CreateTime = canonical(found.CreateTime)
	}
	return seen
}

// isBehind reports whether an instance that was in state known cannot be in state shown any more, unless
// the cloud mends it.
func isBehind(shown, known provider.State) bool {
	life := []provider.State{provider.StateProvisioning, provider.StateRunning, provider.StateStopping, provider.StateTerminated}
	return slices.Contains(life, shown) && slices.Index(life, shown) < slices.Index(life, known)
}

// refusal returns the error that the last create of i was answered with, if that is all that is
// known of it.
func (p *planner) refusal(i *fleet.Instance) error {
	f := p.Facts[i.Name]
	if f.CreateErr == nil || f.Seen != nil {
		return nil
	}
	if reason, _ := details(f.CreateErr); reason == provider.ReasonNameConflict {
		switch {
		case f.Absent: // whoever had the name gave it up meanwhile
			return vanished(i.Name)
		case f.GetErr != nil:
			return f.GetErr
		}
		// It may be ours, with another spec: look whose it is.
		p.ask.Get = append(p.ask.Get, provider.Ref{Name: i.Name, Zone: i.Zone})
	}
	return f.CreateErr
}

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
	if !p.latched() || !p.nameIsTaken() {
		if _, no := p.blocked(); !no && p.nameIsTaken() {
			p.s.Instance = nil // the latch is off: try another name
			return p.create()
		}
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

// removeInstance decides, or repeats, the deletion of an instance that the status names.
func (p *planner) removeInstance(i *fleet.Instance) {
	i.Deleting = true
	p.remove(provider.Ref{Name: i.Name, Zone: i.Zone, Operation: i.Operation})
}

// remove has an instance go unless it was asked already, or the cloud has just refused to.
func (p *planner) remove(ref provider.Ref) {
	if p.Facts[ref.Name].Deleted {
		return
	}
	if r := p.s.Retry; r != nil && r.Reason == reasonDelete && p.Now.Before(r.NotBefore) {
		return
	}
	p.actions = append(p.actions, Action{Verb: Delete, Ref: ref})
}

// noteDeleteFailures records what the last deletes were answered with.
func (p *planner) noteDeleteFailures() {
	for _, name := range slices.Sorted(maps.Keys(p.Facts)) {
		f := p.Facts[name]
		if f.DeleteErr == nil {
			continue
		}
		p.event(EventDeleteFailed, clip(f.DeleteErr.Error(), 512))
		old := p.s.Retry
		if old != nil && old.Reason != reasonDelete {
			continue // a create waits as well, and that weighs more
		}
		r := &fleet.Retry{Attempts: 1, Class: className(f.DeleteErr), Reason: reasonDelete, Message: clip(name+": "+f.DeleteErr.Error(), 512)}
		if old != nil {
			r.Attempts += old.Attempts
		}
		_, after := details(f.DeleteErr)
		// Whatever the class: what must go must go, so it is tried again at least every five minutes.
		r.NotBefore = p.Now.Add(backOff(classTransient, r.Attempts, p.Jitter, after))
		p.s.Retry = r
	}
}
