package main

import (
	"errors"
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// staleFor is after how long a status must be about what was applied: two ticks of the plane.
const staleFor = 2 * time.Minute

// patient forgives what only people can mend until the plane has had time to look at the change.
func patient(since time.Time, look condition) condition {
	return func(p *fleet.Proxy, now time.Time) (bool, string, error) {
		done, progress, err := look(p, now)
		if err != nil && p != nil && len(p.Broken) == 0 && now.Sub(since) < staleFor {
			return false, progress, nil
		}
		return done, progress, err
	}
}

// becomesReady waits for Ready, and for the VM that the spec asks for.
func becomesReady(p *fleet.Proxy, now time.Time) (bool, string, error) {
	done, progress, err := isReady(p, now)
	if err != nil || !done || p.Spec.Mode != fleet.Managed || p.Spec.Paused || p.Status.Instance == nil {
		return done, progress, err
	}
	if p.Status.Next != nil || p.Status.Instance.SpecHash != fleet.SpecHash(p.Spec) {
		return false, "waits for the VM that the new spec asks for", nil
	}
	return true, progress, nil
}

// errHopeless says that waiting longer does not help.
var errHopeless = errors.New("will not become Ready")

// isReady holds for what is Ready, and for what people keep from leases.
func isReady(p *fleet.Proxy, now time.Time) (done bool, progress string, err error) {
	if p == nil {
		return false, "gone", fmt.Errorf("%w: it is gone", errHopeless)
	}
	x := fleet.Explain(*p, now)
	progress = x.State + ": " + x.Why
	switch x.State {
	case string(fleet.ConditionReady), string(fleet.GatePaused), string(fleet.GateDisabled):
		return true, progress, nil
	case string(fleet.GateRejected), string(fleet.PhaseFailed):
		return false, progress, fmt.Errorf("%w: %s", errHopeless, progress)
	}
	return false, progress, nil
}
