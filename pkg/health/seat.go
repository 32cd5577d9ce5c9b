package health

import (
	"fmt"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// seat is the place in a document where the health of one instance is kept, and where that instance
// listens.
type seat struct {
	host string
	port int32
	next bool // Status.NextHealth, else Status.Health
}

// find returns the seat of an incarnation: the endpoint's, or that of the instance which is to take
// it over. ok is false when the document knows no such instance with an address any more, or yet.
func find(p fleet.Proxy, incarnation int64) (s seat, ok bool) {
	if e := p.Status.Endpoint; e != nil && e.Incarnation == incarnation {
		return seat{host: e.Host, port: e.Port}, true
	}
	if n := p.Status.Next; n != nil && n.Incarnation == incarnation && n.Address != "" {
		return seat{host: n.Address, port: p.EffectivePort(), next: true}, true
	}
	if p.Status.Endpoint == nil && incarnation == 0 { // External, and no run has seen it yet
		return seat{host: p.EffectiveHost(), port: p.EffectivePort()}, p.EffectiveHost() != ""
	}
	return seat{}, false
}

func (s seat) health(p *fleet.Proxy) *fleet.Health {
	if s.next {
		return &p.Status.NextHealth
	}
	return &p.Status.Health
}

// apply judges o and returns p as it is to be written, leaving p itself as it is.
func apply(p fleet.Proxy, s seat, o Observation, now time.Time) (fleet.Proxy, Judgement) {
	check := p.Spec.HealthCheckOrDefault()
	j := Judge(*s.health(&p), o, check, o.Incarnation, now)
	if !j.Changed {
		return p, j
	}
	*s.health(&p) = j.Health
	if !s.next {
		p.Status.Conditions.Set(healthyCondition(j.Health, check), now)
		p.Status.Conditions.Set(fleet.ReadyCondition(p), now)
	}
	return p, j
}

// healthyCondition says in words what h says in numbers.
func healthyCondition(h fleet.Health, check fleet.HealthCheck) fleet.Condition {
	c := fleet.Condition{Type: fleet.ConditionHealthy, Status: h.Healthy, Reason: reason(h.Outcome)}
	why := fleet.OutcomeText(h.Outcome)
	if h.Detail != "" {
		why += ": " + h.Detail
	}
	switch {
	case h.Healthy:
		c.Reason = "ProbesPass"
		if h.ConsecutiveFailures > 0 {
			c.Message = fmt.Sprintf("%d of %d failures in a row: %s", h.ConsecutiveFailures, check.UnhealthyThreshold, why)
		}
	case h.ConsecutiveSuccesses > 0:
		c.Reason = "Recovering"
		c.Message = fmt.Sprintf("%d of %d successes in a row", h.ConsecutiveSuccesses, check.HealthyThreshold)
	default:
		c.Message = why
	}
	return c
}

// reason is an outcome as conditions write it: AuthFailed for auth_failed.
func reason(o fleet.Outcome) string {
	switch o {
	case fleet.OutcomeDNS:
		return "DNS"
	case fleet.OutcomeTLS:
		return "TLS"
	}
	var b strings.Builder
	for word := range strings.SplitSeq(string(o), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
