package fleet

import (
	"fmt"
	"strings"
	"time"
)

// Explanation says in words why a Proxy is as it is, for people who look at it.
type Explanation struct {
	State string    `json:"state"`          // Ready, Unhealthy, or the phase or gate that keeps it from leases
	Why   string    `json:"why"`            // one sentence
	Since time.Time `json:"since,omitzero"` // when it became so, where known
	Next  string    `json:"next,omitempty"` // what the plane will do, or what people can do
}

// Explain derives the explanation from the document alone; now is for remaining times.
func Explain(p Proxy, now time.Time) Explanation {
	for _, explain := range []func(Proxy, time.Time) (Explanation, bool){
		explainDeleting, explainRejected, explainPaused, explainFailed, explainDisabled, explainMakingWay, explainPending, explainUnhealthy,
	} {
		if e, ok := explain(p, now); ok {
			return e
		}
	}
	return explainReady(p, now)
}

func explainDeleting(p Proxy, now time.Time) (Explanation, bool) {
	if p.DeleteTime.IsZero() {
		return Explanation{}, false
	}
	e := Explanation{State: string(PhaseDeleting), Why: "its deletion was asked for", Since: p.DeleteTime, Next: "the VM is deleted, then the document"}
	if d := p.Status.Drain; d != nil {
		e.State = string(PhaseDraining)
		e.Why = "its deletion was asked for; live leases are waited for"
		e.Next = fmt.Sprintf("the VM is deleted when they have ended, in %s at the latest", remaining(d.Deadline, now))
	}
	return e, true
}

func explainRejected(p Proxy, _ time.Time) (Explanation, bool) {
	c, ok := p.Status.Conditions.Get(ConditionAccepted)
	broken := p.Broken.Error()
	if len(p.Broken) == 0 && (!ok || c.Status) {
		return Explanation{}, false
	}
	if broken == "" {
		broken = c.Message
	}
	return Explanation{State: string(GateRejected), Why: oneLine(broken), Since: c.LastTransitionTime, Next: "mend the document; until then nothing is done with it"}, true
}

func explainPaused(p Proxy, _ time.Time) (Explanation, bool) {
	return Explanation{State: string(GatePaused), Why: "spec.paused is true: no new leases and no cloud calls, probes go on", Next: "resume it to lease it again"}, p.Spec.Paused
}

func explainFailed(p Proxy, _ time.Time) (Explanation, bool) {
	if p.Status.Phase != PhaseFailed {
		return Explanation{}, false
	}
	e := Explanation{State: string(PhaseFailed), Why: "the cloud refuses it for good", Next: "change what it refuses in the spec, or rotate to try once more"}
	if r := p.Status.Retry; r != nil {
		e.Why += ": " + reasonAndMessage(r)
	}
	if c, ok := p.Status.Conditions.Get(ConditionProvisioned); ok {
		e.Since = c.LastTransitionTime
	}
	return e, true
}

func explainDisabled(p Proxy, _ time.Time) (Explanation, bool) {
	return Explanation{State: string(GateDisabled), Why: "spec.maxLeases is 0: it is never leased", Next: "raise maxLeases to lease it"},
		p.Spec.MaxLeases != nil && *p.Spec.MaxLeases == 0
}

// explainMakingWay: the instance behind the endpoint drains, and there is no successor beside it yet.
func explainMakingWay(p Proxy, now time.Time) (Explanation, bool) {
	d, e := p.Status.Drain, p.Status.Endpoint
	if d == nil || e == nil || d.Incarnation == 0 || d.Incarnation != e.Incarnation {
		return Explanation{}, false
	}
	return Explanation{
		State: string(PhaseDraining), Since: d.Since,
		Why:  "its VM makes way for another one (" + d.Reason + "): the provider has no room for both",
		Next: fmt.Sprintf("the VM is deleted when its leases have ended, in %s at the latest, and made anew", remaining(d.Deadline, now)),
	}, true
}

func explainPending(p Proxy, now time.Time) (Explanation, bool) {
	if p.Status.Endpoint != nil || p.Spec.Mode == External && p.Status.UID != "" {
		return Explanation{}, false
	}
	e := Explanation{State: string(PhasePending), Why: "the plane has not seen it yet", Since: p.CreateTime, Next: "the next run sees to it, within a minute"}
	if i := p.Status.Instance; i != nil {
		e.State, e.Next = string(PhaseProvisioning), "its VM is waited for"
		e.Why = "its VM " + i.Name + " is not up yet"
	}
	if c, ok := p.Status.Conditions.Get(ConditionProvisioned); ok {
		e.Why, e.Since = firstOf(firstOf(c.Message, c.Reason), e.Why), c.LastTransitionTime
	}
	if r := p.Status.Retry; r != nil {
		e.State = string(PhasePending)
		e.Why = reasonAndMessage(r)
		e.Next = fmt.Sprintf("attempt %d in %s", r.Attempts+1, remaining(r.NotBefore, now))
	}
	return e, true
}

func explainUnhealthy(p Proxy, now time.Time) (Explanation, bool) {
	h := p.Status.Health
	if h.Healthy {
		return Explanation{}, false
	}
	if h.LastProbeTime.IsZero() {
		return Explanation{State: string(PhasePending), Why: "it has not been probed yet", Next: "the next tick probes it, within a minute"}, true
	}
	e := Explanation{State: "Unhealthy", Why: OutcomeText(h.Outcome), Since: h.UnhealthySince}
	if h.Detail != "" {
		e.Why += ": " + h.Detail
	}
	e.Next = "probed again every " + (Duration(p.Spec.HealthCheckOrDefault().IntervalSeconds) * Duration(time.Second)).String()
	after := *p.Spec.LifecycleOrDefault().ReplaceUnhealthyAfter
	if p.Spec.Mode == Managed && after > 0 && !h.UnhealthySince.IsZero() {
		e.Next += fmt.Sprintf("; replaced when unhealthy for %s, in %s", after, remaining(h.UnhealthySince.Add(time.Duration(after)), now))
	}
	return e, true
}

func explainReady(p Proxy, now time.Time) Explanation {
	e := Explanation{State: string(ConditionReady), Why: "probes pass; it can be leased"}
	if c, ok := p.Status.Conditions.Get(ConditionReady); ok {
		e.Since = c.LastTransitionTime
	}
	old, d := p.Status.Instance, p.Status.Drain
	switch {
	case old != nil && p.Status.Endpoint != nil && p.Status.Endpoint.Incarnation > old.Incarnation:
		e.Next = "the VM before, " + old.Name + ", is deleted"
		if d != nil {
			e.Next += fmt.Sprintf(" when its leases have ended, in %s at the latest", remaining(d.Deadline, now))
		}
	case p.Status.Replacing != "":
		e.Next = "a fresh VM takes over: " + p.Status.Replacing
	}
	return e
}

// OutcomeText says in a few words what a probe found.
func OutcomeText(o Outcome) string {
	switch o {
	case OutcomeOK:
		return "probes pass"
	case OutcomeStatusMismatch:
		return "the target answers another status than expected"
	case OutcomeBodyMismatch:
		return "the page lacks what it must contain"
	case OutcomeRedirect:
		return "the target redirects"
	case OutcomeBlocked:
		return "the target blocks it (403 or 429)"
	case OutcomeAuthFailed:
		return "the proxy refuses its credentials (407)"
	case OutcomeProxyError:
		return "the proxy refuses to open the tunnel"
	case OutcomeRefused:
		return "nothing listens at its address"
	case OutcomeDNS:
		return "its name does not resolve"
	case OutcomeConnectTimeout:
		return "no connection in time"
	case OutcomeTimeout:
		return "no whole answer in time"
	case OutcomeReset:
		return "the connection breaks off"
	case OutcomeTLS:
		return "the target's certificate is not the target's: somebody intercepts TLS"
	case OutcomeInconclusive:
		return "the target is down for everyone"
	}
	return "not probed yet"
}

func reasonAndMessage(r *Retry) string {
	s := firstOf(r.Reason, r.Class)
	if r.Message != "" {
		s += ": " + r.Message
	}
	return oneLine(s)
}

// remaining rounds a time span up to whole seconds; what is over is "0s".
func remaining(until, now time.Time) string {
	return Duration((max(0, until.Sub(now)) + time.Second - 1).Truncate(time.Second)).String()
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "; ") }
