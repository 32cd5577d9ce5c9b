package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Plan decides what is to be done about one Proxy. It is pure: the same View leads to the same
// Decision. What it never does, whatever the View: plan two creates of one name or for one Proxy,
// name an instance that exists by nothing but a listing as gone, delete an instance that leases may
// still hold, or go beyond the caps that Cloud states.
func Plan(v View) Decision {
	p := newPlanner(v)
	row := p.row()
	if !p.ask.Empty() {
		return Decision{Row: RowAsk, Ask: p.ask, Status: v.Proxy.Status, Fields: store.ReconcileFields, Holds: newPlanner(v).holds()}
	}
	p.conclude(row)
	fields := store.ReconcileFields
	if p.s.Health != v.Proxy.Status.Health || p.s.NextHealth != v.Proxy.Status.NextHealth {
		fields = store.AllFields
	}
	return Decision{Row: row, Status: p.s, Fields: fields, Actions: p.actions, Cool: p.cool, Why: p.why, Holds: p.holds()}
}

// planner works out one decision.
type planner struct {
	View
	s     fleet.Status // as it is to be
	owned map[string]provider.Instance
	hash  string // of the spec as it is now
	life  lifecycle

	ask     Ask
	actions []Action
	cool    map[string]time.Time
	why     Reason
}

// lifecycle is the spec's, in plain durations.
type lifecycle struct{ provision, unhealthy, age, drain time.Duration }

func newPlanner(v View) *planner {
	l := v.Proxy.Spec.LifecycleOrDefault()
	p := &planner{
		View: v, s: v.Proxy.Status.Clone(), hash: fleet.SpecHash(v.Proxy.Spec),
		life: lifecycle{
			provision: time.Duration(*l.ProvisionTimeout), unhealthy: time.Duration(*l.ReplaceUnhealthyAfter),
			age: time.Duration(*l.MaxAge), drain: max(0, time.Duration(*l.DrainTimeout)),
		},
	}
	if p.s.UID != "" && p.s.UID != v.UID {
		// Somebody copied another document with its status: nothing in it is ours.
		p.s = fleet.Status{}
		p.event(EventIdentity, "the status was another document's and has been dropped")
	}
	p.owned = p.ours()
	return p
}

// row finds the row of the table that applies.
func (p *planner) row() Row {
	p.noteDeleteFailures()
	if !p.Proxy.DeleteTime.IsZero() {
		return p.removal()
	}
	if d := p.s.Drain; d != nil && d.Reason == drainDeleted {
		p.s.Drain = nil // somebody took the deletion back; should it come again, it has its whole time
	}
	if len(p.Faults) > 0 {
		return p.invalid(p.Faults)
	}
	p.accept()
	if p.Proxy.Spec.Mode == fleet.External {
		return p.external()
	}
	if !p.Cloud.Known {
		p.provisioned(false, "ProviderUnknown", fmt.Sprintf("no provider %q is configured", p.Proxy.Spec.Provider))
		return RowUnknownProvider
	}
	switch {
	case p.Proxy.Spec.Paused:
		return RowPaused
	case p.Cloud.Blind:
		return RowUncertain
	}
	return p.managed()
}

// invalid leaves everything as it is but says what is wrong.
func (p *planner) invalid(faults fleet.Faults) Row {
	message := clip(faults.Error(), 1024)
	if p.condition(fleet.Condition{Type: fleet.ConditionAccepted, Reason: "InvalidSpec", Message: message}) {
		p.event(EventRejected, message)
	}
	return RowInvalid
}

func (p *planner) accept() {
	p.s.Accepted = &fleet.Accepted{Mode: p.Proxy.Spec.Mode, Provider: p.Proxy.Spec.Provider}
	if c, ok := p.s.Conditions.Get(fleet.ConditionAccepted); ok && !c.Status {
		p.event(EventAccepted, "the document keeps the rules again")
	}
	p.condition(fleet.Condition{Type: fleet.ConditionAccepted, Status: true, Reason: "Valid"})
}

// external follows the spec's address. Another address has to prove itself anew.
func (p *planner) external() Row {
	p.s.UID = p.UID
	host, port := p.Proxy.Spec.Endpoint.Host, p.Proxy.EffectivePort()
	if e := p.s.Endpoint; e == nil || e.Host != host || e.Port != port {
		if e != nil {
			p.event(EventEndpoint, fmt.Sprintf("the address changed from %s to %s", address(e.Host, e.Port), address(host, port)))
			p.forgetHealth()
		}
		p.s.Endpoint = &fleet.StatusEndpoint{Host: host, Port: port, Since: p.Now}
	}
	p.provisioned(true, "External", "")
	return RowExternal
}

// managed sees to the instances of a Managed Proxy.
func (p *planner) managed() Row {
	if !p.identify() {
		return RowUncertain
	}
	p.recallExtra()
	p.adopt()
	p.endStaleDrain()
	row := p.instanceRow()
	p.extras()
	return row
}

// conclude derives what is there for people.
func (p *planner) conclude(row Row) {
	if row != RowInvalid || p.s.Phase == "" {
		p.s.Phase = p.phase(row)
	}
	next := p.Proxy
	next.Status = p.s
	if c, warn := fleet.ExitAddressCondition(next, p.SharesExit); warn && p.Proxy.DeleteTime.IsZero() {
		p.condition(c)
	} else {
		p.s.Conditions.Drop(fleet.ConditionExitAddressShared)
	}
	next.Status = p.s
	p.condition(fleet.ReadyCondition(next))
}

func (p *planner) phase(row Row) fleet.Phase {
	i := p.s.Instance
	switch {
	case row == RowDrain || row == RowDraining:
		return fleet.PhaseDraining
	case !p.Proxy.DeleteTime.IsZero():
		return fleet.PhaseDeleting
	case row == RowExternal:
		return fleet.PhaseRunning
	case p.s.Next != nil || p.s.Replacing != "":
		return fleet.PhaseReplacing
	case i != nil && p.s.Endpoint != nil:
		return fleet.PhaseRunning
	case p.latched():
		return fleet.PhaseFailed
	case i != nil && (i.State != "" || p.s.Retry == nil):
		return fleet.PhaseProvisioning
	}
	return fleet.PhasePending
}

// provisioned sets the condition Provisioned.
func (p *planner) provisioned(is bool, reason, message string) {
	p.condition(fleet.Condition{Type: fleet.ConditionProvisioned, Status: is, Reason: reason, Message: message})
}

func (p *planner) condition(c fleet.Condition) (changed bool) { return p.s.Conditions.Set(c, p.Now) }

// event adds to the Proxy's history. What repeats itself is said once.
func (p *planner) event(reason, message string) {
	if n := len(p.s.Events); n > 0 && p.s.Events[n-1].Reason == reason && p.s.Events[n-1].Message == message {
		return
	}
	p.s.AddEvent(p.Now, reason, message)
}

// forgetHealth drops what was known of an address or instance that is not the Proxy's any more.
func (p *planner) forgetHealth() {
	if p.s.Health == (fleet.Health{}) {
		return
	}
	p.s.Health = fleet.Health{}
	p.unproven()
}

func (p *planner) unproven() {
	p.condition(fleet.Condition{Type: fleet.ConditionHealthy, Reason: "NotProbed", Message: "the instance has not been probed yet"})
}

// sameStatus reports whether nothing is to be written.
func sameStatus(a, b fleet.Status) bool {
	return reflect.DeepEqual(a, b) || reflect.DeepEqual(store.NormalStatus(a), store.NormalStatus(b))
}

// clip shortens a text for people, at a rune's boundary.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := []rune(s[:limit])
	return string(slices.Delete(cut, max(0, len(cut)-4), len(cut))) + "..."
}
