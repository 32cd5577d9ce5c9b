package reconcile

import (
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// reasonDelete marks a Retry that is about a delete: it holds up no create.
const reasonDelete = "DeleteFailed"

// create records the intent for the next incarnation and asks for it, unless something forbids it.
func (p *planner) create() Row {
	zone, row := p.mayCreate()
	if row != RowCreate {
		p.s.Replacing = "" // without an instance it waits like any other Proxy
		return row
	}
	p.s.Instance = p.intend(zone)
	p.order(p.s.Instance)
	p.provisioned(false, "Creating", "")
	return RowCreate
}

// mayCreate chooses the zone for a new instance, or says what forbids one.
func (p *planner) mayCreate() (zone string, row Row) {
	if row, no := p.blocked(); no {
		p.waiting()
		return "", row
	}
	if p.crowded("") {
		p.provisioned(false, "Crowded", "two instances exist already; one of them is going")
		return "", RowCrowded
	}
	if !p.room(1) {
		p.full()
		return "", RowFull
	}
	zone, ok := p.zone()
	if !ok {
		p.noStock()
		return "", RowNoStock
	}
	return zone, RowCreate
}

// intend returns the record of an instance that does not exist yet, under a name of its own.
func (p *planner) intend(zone string) *fleet.Instance {
	p.s.Incarnation++
	i := &fleet.Instance{
		Name: p.nameOf(p.s.Incarnation), Incarnation: p.s.Incarnation, Zone: zone,
		SpecHash: p.hash, IntentTime: p.Now,
	}
	p.event(EventCreating, named(i))
	return i
}

// order plans the create of a recorded intent.
func (p *planner) order(i *fleet.Instance) {
	place := fleet.Placement{}
	if p.Proxy.Spec.Placement != nil {
		place = *p.Proxy.Spec.Placement
	}
	p.actions = append(p.actions, Action{Verb: Create, Create: provider.CreateRequest{
		Name: i.Name, Owner: p.Owner, UID: p.UID, Incarnation: i.Incarnation, SpecHash: i.SpecHash, ProxyName: p.Proxy.Name,
		Region: place.Region, Zone: i.Zone, MachineType: place.MachineType, Spot: place.Spot, Port: p.Proxy.EffectivePort(),
	}})
}

// createAgain asks for an intent of an earlier run, whose instance does not exist.
func (p *planner) createAgain(i *fleet.Instance) Row {
	if row, no := p.blocked(); no {
		p.waiting()
		return row
	}
	if i.SpecHash != p.hash || p.nameIsTaken() {
		// The same name with another spec would be a conflict if the instance turned up after all.
		p.s.Instance = nil
		return p.create()
	}
	row, ok := p.mayAskAgain(i)
	switch {
	case ok:
		p.order(i)
		p.provisioned(false, "Creating", "")
	case row == RowFull:
		p.s.Instance = nil // its place is somebody else's: intents beyond a lowered cap would block each other
	}
	return row
}

// mayAskAgain checks caps and stock for an intent that is recorded already, and moves it to another
// zone when its own has no machines: nothing exists under its name.
func (p *planner) mayAskAgain(i *fleet.Instance) (Row, bool) {
	if p.crowded(i.Name) {
		return RowCrowded, false
	}
	if !p.room(0) {
		p.full()
		return RowFull, false
	}
	if zone, ok := p.zone(); !ok {
		p.noStock()
		return RowNoStock, false
	} else if !p.hasStock(i.Zone) {
		i.Zone = zone
	}
	return RowCreateAgain, true
}

// zone returns the first zone of the spec that may have machines. When all are without, a Proxy that
// waits by its own back-off tries again where stock is expected first; others wait.
func (p *planner) zone() (zone string, ok bool) {
	zones := p.Proxy.Spec.ZonesInOrder()
	if len(zones) == 0 {
		return "", p.hasStock("")
	}
	for _, z := range zones {
		if p.hasStock(z) {
			return z, true
		}
		if zone == "" || p.Cloud.Cooling[z].Before(p.Cloud.Cooling[zone]) {
			zone = z
		}
	}
	return zone, p.s.Retry != nil
}

func (p *planner) hasStock(zone string) bool {
	return p.cool[zone].IsZero() && !p.Now.Before(p.Cloud.Cooling[zone])
}

// refused learns from an attempt that came to nothing for certain, or of which nothing is known but
// the error. After a stock-out the next zone is tried at once, under the same name, if by now nothing
// turned up that has its place.
func (p *planner) refused(i *fleet.Instance, err error) (row Row, certain bool) {
	i.State, i.Operation, i.Address = "", "", ""
	if _, out := provider.StockOutZone(err); out {
		p.cool = map[string]time.Time{i.Zone: p.Now.Add(coolDown)}
		if zone, _ := p.zone(); p.hasStock(zone) && i.SpecHash == p.hash && p.room(0) && !p.crowded(i.Name) {
			p.event(EventZone, fmt.Sprintf("%s has no machines; %s is tried in %s", i.Zone, i.Name, zone))
			i.Zone, i.IntentTime = zone, p.Now
			p.order(i)
			return RowNextZone, false
		}
	}
	class := p.fail(err)
	if class == classPermanent {
		return RowFailed, true
	}
	return RowRefused, class == classQuota
}

// fail records a failure and when to try again.
func (p *planner) fail(err error) (class string) {
	class = className(err)
	if class == classNotFound { // nothing that a create may say
		class = classTransient
	}
	reason, after := details(err)
	r := &fleet.Retry{Attempts: 1, Class: class, Reason: reason, Message: clip(err.Error(), 512), SpecHash: p.hash}
	if old := p.s.Retry; old != nil && old.Class == class && old.Reason != reasonDelete && old.SpecHash == p.hash {
		r.Attempts += old.Attempts
	}
	r.NotBefore = p.Now
	if class != classPermanent {
		r.NotBefore = p.Now.Add(backOff(class, r.Attempts, p.Jitter, after))
	}
	p.s.Retry = r
	p.event(EventRefused, r.Message)
	return class
}

// blocked reports whether the last failure forbids another attempt now, and forgets it when it does
// so no longer: another spec, or somebody's wish for a fresh instance, makes it void.
func (p *planner) blocked() (Row, bool) {
	r := p.s.Retry
	switch {
	case r == nil || r.Reason == reasonDelete:
		return "", false
	case p.latched():
		return RowFailed, true
	case r.SpecHash != p.hash:
		p.s.Retry = nil
	case r.Class != classPermanent && p.Now.Before(r.NotBefore):
		return RowBackOff, true
	}
	return "", false
}

// latched reports whether the cloud refuses this very spec for good.
func (p *planner) latched() bool {
	r := p.s.Retry
	return r != nil && r.Class == classPermanent && r.Reason != reasonDelete && r.SpecHash == p.hash && !p.Proxy.RotateTime.After(r.NotBefore)
}

// nameIsTaken reports whether the last failure was about the name: then only another name can do.
func (p *planner) nameIsTaken() bool {
	return p.s.Retry != nil && p.s.Retry.Reason == provider.ReasonNameConflict
}

// waiting says in the condition why there is no instance.
func (p *planner) waiting() {
	r := p.s.Retry
	reason := r.Class
	switch {
	case r.Reason == provider.ReasonNameConflict || r.Reason == EventTimeout:
		reason = r.Reason
	case r.Class == classTransient:
		reason = "CreateFailed"
	case r.Class == classPermanent:
		reason = "CreateRefused"
	}
	p.provisioned(false, reason, r.Message)
}

func (p *planner) full() {
	p.provisioned(false, "ProviderFull", fmt.Sprintf("%d instances of %s are all that its configuration allows", p.Cloud.Max, p.Proxy.Spec.Provider))
}

func (p *planner) noStock() {
	p.provisioned(false, "StockOut", "no zone of the spec has machines at the moment")
}
