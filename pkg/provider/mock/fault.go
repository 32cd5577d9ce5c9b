package mock

import (
	"errors"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Reasons of the errors that this cloud makes up, in the words of Compute Engine.
const (
	reasonUnavailable = "SERVICE_UNAVAILABLE"
	reasonQuota       = "QUOTA_EXCEEDED"
	reasonStockOut    = "ZONE_RESOURCE_POOL_EXHAUSTED"
	reasonRefused     = "FORBIDDEN"
	reasonRate        = "RATE_LIMIT_EXCEEDED"
	reasonInvalid     = "INVALID"
	reasonPort        = "PORT_TAKEN"
)

var (
	lostReply = provider.Error{Class: provider.ErrTransient, Reason: reasonUnavailable, Err: errors.New("the reply was lost")}
	outage    = provider.Error{Class: provider.ErrTransient, Reason: reasonUnavailable, Err: errors.New("the cloud is down")}
	nameTaken = provider.Error{Class: provider.ErrPermanent, Reason: provider.ReasonNameConflict, Err: errors.New("the name is taken by another instance")}
)

// about returns e as the error of one call.
func about(e provider.Error, v Verb, ref provider.Ref) error {
	e.Op, e.Name, e.Zone = string(v), ref.Name, ref.Zone
	return &e
}

// faults are what a cloud does wrong at the moment. The cloud's mutex guards them.
type faults struct {
	refusals map[Verb][]provider.Error // by call, the next first
	lost     map[Verb]int              // replies to lose yet
	launches []provider.Error          // with what the next launches fail, the next first
	out      map[string]bool           // zones without machines
	hidden   map[string]bool           // zones that listings miss
	lag      int                       // listings that a listing is behind
	capacity int                       // 0 means no end
	limit    int                       // creates in a window; 0 means no end
	window   time.Duration
	recent   []time.Time   // creates in the last window
	stalled  chan struct{} // closed when calls may go on; nil when they do
	outages  int           // how many outages are under way
}

func newFaults(s Settings) faults {
	f := faults{
		refusals: map[Verb][]provider.Error{}, lost: map[Verb]int{VerbCreate: s.LoseResponses}, out: set(s.StockOut),
		lag: s.ListLag, capacity: s.Capacity, limit: s.CreateLimit, window: s.CreateWindow,
	}
	if f.window == 0 {
		f.window = defaultWindow
	}
	f.refusals[VerbCreate] = slices.Repeat([]provider.Error{causes[s.FailWith]}, s.FailNextCreates)
	return f
}

func set(zones []string) map[string]bool {
	out := map[string]bool{}
	for _, zone := range zones {
		out[zone] = true
	}
	return out
}

// next returns the error with which this call is refused, nil when it is not.
func (f *faults) next(v Verb) *provider.Error {
	if f.outages > 0 {
		return &outage
	}
	queue := f.refusals[v]
	if len(queue) == 0 {
		return nil
	}
	f.refusals[v] = queue[1:]
	return &queue[0]
}

// loses reports whether the reply of this call is lost.
func (f *faults) loses(v Verb) bool {
	if f.lost[v] == 0 {
		return false
	}
	f.lost[v]--
	return true
}

// launchFailure returns the error with which this launch will fail, nil when it will not.
func (f *faults) launchFailure(req provider.CreateRequest) *provider.Error {
	if len(f.launches) == 0 {
		return nil
	}
	failure := f.launches[0]
	f.launches = f.launches[1:]
	failure.Op, failure.Name, failure.Zone = "launch", req.Name, req.Zone
	return &failure
}

// overLimit returns how long until another create is let through, 0 for now.
func (f *faults) overLimit(now time.Time) time.Duration {
	f.recent = slices.DeleteFunc(f.recent, func(t time.Time) bool { return !now.Before(t.Add(f.window)) })
	if f.limit == 0 || len(f.recent) < f.limit {
		return 0
	}
	return f.recent[len(f.recent)-f.limit].Add(f.window).Sub(now)
}

// count remembers a create for overLimit.
func (f *faults) count(now time.Time) {
	if f.limit > 0 {
		f.recent = append(f.recent, now)
	}
}
