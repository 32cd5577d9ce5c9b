package reconcile

import (
	"maps"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// vanishedDrain is how long leases may last on a Proxy whose document somebody removed without
// asking: nobody knows its lifecycle any more, so it is the default.
const vanishedDrain = 10 * time.Minute

// entryOf derives p's entry in the catalog. rejected says what is wrong with p, if anything; old is
// the entry as it is, nil when there is none; slots are p's slots where capacityOf needs them, else nil.
func entryOf(p fleet.Proxy, rejected string, old *fleet.Entry, slots *[]store.Slot, now time.Time) fleet.Entry {
	e := fleet.Entry{}
	if old != nil {
		e = *old
	}
	if rejected != "" {
		// What the document says is not to be trusted: all stays as it was, but for the gate.
		e.Gate, e.GateReason = fleet.GateRejected, firstLine(rejected)
		if old == nil {
			e.Ceiling = fleetMaxLeases // nobody knows up to where there are leases
		}
	} else {
		describe(&e, p)
		e.Capacity, e.Ceiling = capacityOf(e.MaxLeases, old, slots, now)
		e.Gate, e.GateReason = gateOf(p)
	}
	if why, deadline, ok := closing(p, now); ok {
		e.Gate, e.GateReason, e.DrainDeadline = fleet.GateDraining, why, deadline
	}
	drainOlder(&e, p, old, now)
	e.Verdict = verdictOf(p, e, old)
	e.Quarantine = quarantineOf(old, now)
	if old == nil || narrower(e, *old) {
		e.NarrowTime = now
	}
	return e
}

// describe copies what leases select by and are told.
func describe(e *fleet.Entry, p fleet.Proxy) {
	e.Host, e.Port, e.Incarnation = "", p.EffectivePort(), 0
	if end := p.Status.Endpoint; end != nil {
		e.Host, e.Port, e.Incarnation = end.Host, end.Port, end.Incarnation
	}
	e.Labels = nil
	if len(p.Labels) > 0 {
		e.Labels = maps.Clone(p.Labels)
	}
	e.Mode, e.Provider, e.Region = p.Spec.Mode, p.Spec.Provider, ""
	if p.Spec.Placement != nil {
		e.Region = p.Spec.Placement.Region
	}
	e.Credentials = p.Spec.Endpoint.CredentialsSecretRef
	e.MaxLeases = p.Spec.MaxLeasesOrDefault()
}

// gateOf says what of the document, health aside, speaks against new leases.
func gateOf(p fleet.Proxy) (fleet.Gate, string) {
	provisioned, _ := p.Status.Conditions.Get(fleet.ConditionProvisioned)
	switch {
	case p.Spec.Paused:
		return fleet.GatePaused, "spec.paused is true"
	case p.Spec.MaxLeasesOrDefault() == 0:
		return fleet.GateDisabled, "spec.maxLeases is 0"
	case p.Status.Endpoint != nil:
		return fleet.GateOpen, ""
	case p.Status.Phase == fleet.PhaseFailed:
		return fleet.GateFailed, firstLine(provisioned.Message)
	case provisioned.Message != "":
		return fleet.GatePending, firstLine(provisioned.Message)
	}
	return fleet.GatePending, provisioned.Reason
}

// closing reports whether the Proxy is on its way out with no successor beside it, why, and until
// when its leases may last.
func closing(p fleet.Proxy, now time.Time) (why string, deadline time.Time, ok bool) {
	d := p.Status.Drain
	switch {
	case !p.DeleteTime.IsZero() && d != nil && d.Incarnation == 0:
		return "its deletion was asked for", d.Deadline, true
	case !p.DeleteTime.IsZero(): // the run has not come to it yet
		return "its deletion was asked for", now.Add(time.Duration(*p.Spec.LifecycleOrDefault().DrainTimeout)), true
	case d != nil && p.Status.Endpoint != nil && d.Incarnation == p.Status.Endpoint.Incarnation && d.Incarnation != 0:
		return "it is replaced (" + d.Reason + ") with no room for a successor beside it", d.Deadline, true
	}
	return "", time.Time{}, false
}

// drainOlder sets until when leases on older incarnations may last: while they are waited for, as
// long as that is said; and not at all when their instance is gone.
func drainOlder(e *fleet.Entry, p fleet.Proxy, old *fleet.Entry, now time.Time) {
	if e.Gate == fleet.GateDraining || e.Gate == fleet.GateRejected {
		return
	}
	if p.Spec.Mode == fleet.External {
		e.DrainingBelow, e.DrainDeadline = 0, time.Time{}
		return
	}
	below, deadline := e.Incarnation, now
	switch d := p.Status.Drain; {
	case d != nil && d.Incarnation > 0:
		below, deadline = max(below, d.Incarnation+1), d.Deadline
		if e.Incarnation > 0 {
			below = e.Incarnation
		}
	case e.Incarnation > 0:
		deadline = p.Status.Endpoint.Since
	case old != nil:
		below = max(old.DrainingBelow, old.Incarnation+1)
		if old.Incarnation == 0 {
			below = old.DrainingBelow
		}
	}
	if old != nil && old.DrainingBelow == below {
		if d := p.Status.Drain; d == nil || d.Incarnation == 0 {
			deadline = old.DrainDeadline
		}
	}
	e.DrainingBelow, e.DrainDeadline = below, deadline
	if below <= 1 { // there has been no older one
		e.DrainingBelow, e.DrainDeadline = 0, time.Time{}
	}
}

// verdictOf keeps the verdict, which is health's, unless it is about something else than the entry
// or the document knows of a later one, of which the catalog was not told.
func verdictOf(p fleet.Proxy, e fleet.Entry, old *fleet.Entry) fleet.Verdict {
	known := fleet.VerdictOf(p)
	if e.Host == "" {
		return fleet.Verdict{}
	}
	if old == nil || old.Host != e.Host || old.Port != e.Port || old.Verdict.Incarnation != e.Incarnation {
		return known
	}
	if known.Incarnation == e.Incarnation && known.Healthy != old.Verdict.Healthy && !known.Since.Before(old.Verdict.Since) {
		return known
	}
	return old.Verdict
}

// quarantineOf keeps what has not expired.
func quarantineOf(old *fleet.Entry, now time.Time) map[string]time.Time {
	if old == nil || len(old.Quarantine) == 0 {
		return nil
	}
	kept := maps.Clone(old.Quarantine)
	maps.DeleteFunc(kept, func(_ string, until time.Time) bool { return !now.Before(until) })
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// narrower reports whether e takes something from new leases that old gave.
func narrower(e, old fleet.Entry) bool {
	return e.Gate != old.Gate && e.Gate != fleet.GateOpen || e.Capacity < old.Capacity || e.Host != old.Host || e.Port != old.Port ||
		e.Incarnation != old.Incarnation || e.DrainingBelow > old.DrainingBelow
}

// closedEntry closes the entry of a Proxy whose document is gone. drop is true when its leases have
// had their time.
func closedEntry(old fleet.Entry, now time.Time) (e fleet.Entry, drop bool) {
	if old.Gate == fleet.GateDraining && !old.DrainDeadline.IsZero() {
		return old, !now.Before(old.DrainDeadline)
	}
	old.Gate, old.GateReason = fleet.GateDraining, "the document is gone"
	old.DrainDeadline, old.NarrowTime = now.Add(vanishedDrain), now
	return old, false
}

// sameEntry reports whether nothing is to be written.
func sameEntry(a, b fleet.Entry) bool {
	sameTime := func(x, y time.Time) bool { return x.Equal(y) }
	switch {
	case !maps.Equal(a.Labels, b.Labels), !maps.EqualFunc(a.Quarantine, b.Quarantine, sameTime),
		!a.DrainDeadline.Equal(b.DrainDeadline), !a.NarrowTime.Equal(b.NarrowTime), !a.Verdict.Since.Equal(b.Verdict.Since),
		(a.Credentials == nil) != (b.Credentials == nil), a.Credentials != nil && *a.Credentials != *b.Credentials:
		return false
	}
	plain := func(e fleet.Entry) []any {
		return []any{e.Host, e.Port, e.Incarnation, e.Mode, e.Provider, e.Region, e.Gate, e.GateReason, e.MaxLeases, e.Capacity,
			e.Ceiling, e.DrainingBelow, e.Verdict.Healthy, e.Verdict.Outcome, e.Verdict.Incarnation}
	}
	return slices.Equal(plain(a), plain(b))
}

// firstLine keeps reasons short: the catalog holds a thousand of them in one document.
func firstLine(s string) string {
	for i, r := range s {
		if r == '\n' {
			s = s[:i]
			break
		}
	}
	return clip(s, 200)
}
