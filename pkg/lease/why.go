package lease

import (
	"strconv"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// states are all that stateOf returns.
func states() []string {
	return []string{
		stateReady, stateUnhealthy, string(fleet.GatePending), string(fleet.GateFailed), string(fleet.GateRejected),
		string(fleet.GatePaused), string(fleet.GateDraining), string(fleet.GateDisabled),
	}
}

// The states that are no gates.
const (
	stateReady     = "Ready"
	stateUnhealthy = "Unhealthy"
)

// stateOf names an entry's state as people know it: Ready, Unhealthy, or its gate.
func stateOf(e fleet.Entry) string {
	switch {
	case e.Gate != fleet.GateOpen:
		return string(e.Gate)
	case e.Ready():
		return stateReady
	case e.Host == "" || e.Verdict.Incarnation != e.Incarnation || e.Verdict.Since.IsZero() && e.Verdict.Outcome == "":
		return string(fleet.GatePending) // not probed yet
	}
	return stateUnhealthy
}

// reasonOf says why an entry is in its state, in words.
func reasonOf(e fleet.Entry) string {
	switch {
	case e.GateReason != "":
		return e.GateReason
	case e.Gate != fleet.GateOpen:
		return ""
	case e.Ready():
		return ""
	}
	return fleet.OutcomeText(e.Verdict.Outcome)
}

// whyNot counts the matching proxies by state, for a refusal.
func whyNot(all []Candidate, f Filter) map[string]string {
	counts := map[string]int{}
	for _, c := range all {
		if f.Matches(c.Name, c.Entry) {
			counts[stateOf(c.Entry)]++
		}
	}
	out := map[string]string{}
	for state, n := range counts {
		out[state] = strconv.Itoa(n)
	}
	return out
}
