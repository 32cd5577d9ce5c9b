package fleet

import "time"

// ReadyCondition derives from the rest of the document whether new leases may go to p, capacity
// aside. Reconcile and health both write it, whenever they write what it depends on.
func ReadyCondition(p Proxy) Condition {
	e := Explain(p, time.Time{})
	c := Condition{Type: ConditionReady, Status: e.State == string(ConditionReady), Reason: e.State, Message: e.Why}
	if end := p.Status.Endpoint; c.Status && (end == nil || end.Incarnation != p.Status.Health.Incarnation) {
		c.Status, c.Reason, c.Message = false, string(PhasePending), "the instance behind its address has not been probed yet"
	}
	return c
}

// VerdictOf returns the verdict that p's entry in the catalog is to have. Of a healthy Proxy it says
// no more than that, so that a failure below the threshold changes no entry.
func VerdictOf(p Proxy) Verdict {
	h := p.Status.Health
	healthy, _ := p.Status.Conditions.Get(ConditionHealthy)
	v := Verdict{Healthy: h.Healthy, Outcome: h.Outcome, Incarnation: h.Incarnation, Since: healthy.LastTransitionTime}
	if v.Healthy {
		v.Outcome = OutcomeOK
	}
	return v
}
