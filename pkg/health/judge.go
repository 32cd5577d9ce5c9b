package health

import (
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// Heartbeat is how old the last recorded probe may grow while nothing changes. It is what a fleet at
// rest costs: one write per Proxy in that time.
const Heartbeat = 5 * time.Minute

// Observation is a result and what it is a result of.
type Observation struct {
	Result
	Incarnation int64     // that was probed
	Tick        time.Time // of the run that asked for it
}

// Judgement is what an observation changes.
type Judgement struct {
	Health  fleet.Health
	Changed bool    // Health is to be written
	Flipped bool    // the verdict on this incarnation is another one than before
	Dropped Dropped // why the observation counts for nothing; empty when it counted
}

// Dropped is a reason for not counting an observation.
type Dropped string

// The reasons.
const (
	DroppedStale        Dropped = "stale"   // its tick, or a later one, has been counted already
	DroppedForeign      Dropped = "foreign" // it is about another incarnation than the current one
	DroppedInconclusive Dropped = "inconclusive"
)

// Judge makes of health h, of whatever incarnation, and observation o what is known of incarnation
// current. A verdict turns after as many like results in a row as check (with defaults) says; what
// has never been healthy counts as unhealthy. Counters stop at their thresholds, so that a Proxy at
// rest changes nothing but for a heartbeat. Ticks are counted once, in whatever order they come in.
func Judge(h fleet.Health, o Observation, check fleet.HealthCheck, current int64, now time.Time) Judgement {
	before := h
	if h.Incarnation != current {
		h = fleet.Health{Incarnation: current} // a new instance proves itself anew
	}
	switch {
	case o.Incarnation != current:
		return Judgement{Health: before, Dropped: DroppedForeign}
	case !o.Tick.After(h.Tick):
		return Judgement{Health: before, Dropped: DroppedStale}
	case o.Outcome == fleet.OutcomeInconclusive:
		return Judgement{Health: before, Dropped: DroppedInconclusive}
	}
	after := count(h, o, check, now)
	if after == h && h == before && now.Sub(before.LastProbeTime) < Heartbeat {
		return Judgement{Health: before}
	}
	after.Tick, after.LastProbeTime = o.Tick, now
	after.Detail, after.LatencyMs = o.Detail, o.Latency.Milliseconds()
	return Judgement{Health: after, Changed: true, Flipped: after.Healthy != h.Healthy}
}

// count applies the thresholds. It touches only what must not differ in a Proxy at rest.
func count(h fleet.Health, o Observation, check fleet.HealthCheck, now time.Time) fleet.Health {
	h.Outcome = o.Outcome
	switch {
	case o.Outcome == fleet.OutcomeOK:
		h.ConsecutiveFailures = 0
		h.ConsecutiveSuccesses = min(h.ConsecutiveSuccesses+1, check.HealthyThreshold)
		if h.ConsecutiveSuccesses >= check.HealthyThreshold {
			h.Healthy, h.UnhealthySince = true, time.Time{}
		}
		if o.ExitAddress != "" || check.ExitAddressFrom == "" {
			h.ExitAddress = o.ExitAddress
		}
	case o.Outcome == fleet.OutcomeBlocked && check.OnBlocked == fleet.OnBlockedIgnore: // counts neither way
	default:
		h.ConsecutiveSuccesses = 0
		h.ConsecutiveFailures = min(h.ConsecutiveFailures+1, check.UnhealthyThreshold)
		if h.ConsecutiveFailures >= check.UnhealthyThreshold {
			h.Healthy = false
			if h.UnhealthySince.IsZero() {
				h.UnhealthySince = now
			}
		}
	}
	return h
}
