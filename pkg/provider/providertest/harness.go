// Package providertest is the suite that every provider passes: one case per promise of the contract.
package providertest

import (
	"testing"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Harness opens the clouds that the suite runs against, a fake or a real one.
type Harness struct {
	// Open returns a cloud of its own for one case: nothing that another case does may be seen in it,
	// except under an owner that the suite made up for that case alone. What Open starts it ends with
	// t.Cleanup. Cases run in parallel.
	Open func(t *testing.T) Cloud
}

// Cloud is one cloud under test. Only Provider, Template and Step are required: a case that needs
// something which is nil, 0 or false skips and says so.
type Cloud struct {
	// Provider is the provider under test.
	Provider provider.Provider

	// Template is a request that this cloud takes, as far as placement, MachineType, Spot, UserData
	// and Port go. The suite fills in all fields that identify the instance.
	Template provider.CreateRequest

	// Step lets some time pass: it moves the clock of a fake, or sleeps. A hundred steps are enough
	// for any instance to be running, or to be gone after it was deleted.
	Step func()

	// Peer returns a second provider value over the same cloud, as another process would hold it.
	// Where it is nil the suite shares Provider.
	Peer func(t *testing.T) provider.Provider

	// Many is how many instances it takes to make a listing several pages long. A fake serves small
	// pages so that it is a handful; for a cloud without pages a few hundred do.
	Many int

	// Faults make the cloud fail.
	Faults Faults
}

// Faults are what a cloud can be told to do wrong. All of them are optional. An injector is called
// before the call that it is about, and one that returns end lasts until end is called.
type Faults struct {
	// RefuseCreate makes the next Create fail with class, one of ErrQuotaExceeded, ErrTransient and
	// ErrPermanent, before anything is made.
	RefuseCreate func(t *testing.T, class error)

	// LoseReply makes the next Create take effect while its answer is lost on the way back.
	LoseReply func(t *testing.T)

	// FailLaunch makes the next Create be accepted and come to nothing later, for want of quota.
	FailLaunch func(t *testing.T)

	// StockOut makes the zone have no machines left. Whether Create says so or a later Get is the
	// cloud's own way.
	StockOut func(t *testing.T, zone string)

	// Stop stops a running instance from the outside, as an end of a spot VM does: it stays, stopped,
	// and keeps its name.
	Stop func(t *testing.T, ref provider.Ref)

	// Vanish removes an instance from the outside without a trace.
	Vanish func(t *testing.T, ref provider.Ref)

	// Hide makes listings miss the zone, as they do when it does not answer.
	Hide func(t *testing.T, zone string) (end func())

	// Outage makes every call fail as when the cloud is down.
	Outage func(t *testing.T) (end func())

	// Stall makes every call hang until its context ends or end is called. It returns only when that
	// is so for all calls that begin afterwards.
	Stall func(t *testing.T) (end func())
}

// Run runs every case as a subtest of t, which each implementation names TestConformance.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		t.Run(c.promise, func(t *testing.T) {
			t.Parallel()
			c.check(newRig(t, h.Open(t)))
		})
	}
}
