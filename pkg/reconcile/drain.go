package reconcile

import (
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Settle is how long after the catalog was closed leases are counted first: no lease function grants
// by a copy of the catalog that is older than 5 seconds, and one call may be under way.
const Settle = 10 * time.Second

// skew is by how much clocks may differ: a slot counts as live for so long after its end.
const skew = 2 * time.Second

// The reasons of drains that are no Reason.
const (
	drainDeleted   = "Deleted"
	drainDuplicate = "Duplicate"
)

// drain begins to wait for the leases on one incarnation, or on all of them (0).
func (p *planner) drain(reason string, incarnation int64) {
	p.s.Drain = &fleet.Drain{Reason: reason, Since: p.Now, Deadline: p.Now.Add(p.life.drain), Incarnation: incarnation}
	p.event(EventDraining, fmt.Sprintf("%s: no new leases; live ones may last for %s", reason, p.life.drain))
}

// endStaleDrain ends a drain that nothing waits for any more: of an instance that is no more, or has
// never been up, or of a duplicate that has become the current instance.
func (p *planner) endStaleDrain() {
	d, i := p.s.Drain, p.s.Instance
	switch {
	case d == nil:
	case d.Reason == drainDuplicate:
		if p.isNamed(p.nameOf(d.Incarnation)) {
			p.s.Drain = nil
		}
	case i == nil || i.Incarnation != d.Incarnation || i.Address == "":
		p.s.Drain = nil
	}
}

// drained reports whether the leases that the drain waits for have ended, or have had their time. It
// is not so before the catalog says that there are no new ones; and then it asks for the slots.
func (p *planner) drained() bool {
	d := p.s.Drain
	if !p.closed(d.Incarnation) {
		return false
	}
	if !p.Now.Before(d.Deadline) {
		return true
	}
	if p.Slots == nil {
		p.ask.Slots = true
		return false
	}
	for _, s := range *p.Slots {
		if isLive(s, p.Now) && (d.Incarnation == 0 || s.Incarnation == d.Incarnation) {
			return false
		}
	}
	return true
}

// closed reports whether no lease function grants leases on the incarnation (0: on any) any more.
func (p *planner) closed(incarnation int64) bool {
	e := p.Entry
	if e == nil || p.Now.Before(e.NarrowTime.Add(Settle)) {
		return false
	}
	return e.Gate == fleet.GateDraining || incarnation != 0 && (e.Gate != fleet.GateOpen || e.Incarnation != incarnation)
}

// isLive reports whether a lease may still be used.
func isLive(s store.Slot, now time.Time) bool { return now.Before(s.ExpireTime.Add(skew)) }
