package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// Summary says what one run found and did. Empty members are left out of its JSON.
type Summary struct {
	Skipped string `json:"skipped,omitempty"` // why nothing was done: "locked"

	Start   time.Time `json:"start,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`

	Proxies int            `json:"proxies,omitempty"` // documents
	Phases  map[string]int `json:"phases,omitempty"`  // documents by phase, as the run leaves them
	Ready   int            `json:"ready,omitempty"`   // documents that can be leased

	Actions      map[string]int `json:"actions,omitempty"`      // what was done, by kind
	Replacements map[string]int `json:"replacements,omitempty"` // instances given up for others, by reason
	Errors       map[string]int `json:"errors,omitempty"`       // by class
	Failures     []Failure      `json:"failures,omitempty"`     // the first ten errors

	Orphans       int      `json:"orphans,omitempty"`       // instances that no document asked for
	OrphansFrozen bool     `json:"orphansFrozen,omitempty"` // so many that none is deleted
	MeltDown      []string `json:"meltDown,omitempty"`      // providers where too many are unhealthy to replace any
	Incomplete    []string `json:"incomplete,omitempty"`    // providers that did not show everything

	ProbesDue    int    `json:"probesDue,omitempty"`
	PublishError string `json:"publishError,omitempty"` // why probes were not published

	OutOfTime bool `json:"outOfTime,omitempty"` // the next run goes on where this one stopped

	cursor  string
	orphans map[string]time.Time
}

// Failure is one error of a run.
type Failure struct {
	Proxy   string `json:"proxy,omitempty"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

const skippedLocked = "locked"

// What a summary quotes is bounded: it is stored in one document.
const (
	maxFailures = 10
	maxMessage  = 2500 // bytes; a panic's stack is longer than most errors
)

// The kinds of actions.
const (
	didCreate  = "create"
	didDelete  = "delete"
	didGet     = "get"
	didRemove  = "removeDocument"
	didWrite   = "writeStatus"
	didCatalog = "writeCatalog"
	didOrphan  = "deleteOrphan"
	didExpire  = "deleteSlot"
)

// The classes of errors beyond those of providers.
const (
	errorStore   = "Store"
	errorCatalog = "Catalog"
	errorPanic   = "Panic"
	errorTime    = "Timeout"
)

// callClass sorts an error of a provider.
func callClass(err error) string {
	if isTime(err) {
		return errorTime
	}
	return className(err)
}

// storeClass sorts an error of the store.
func storeClass(err error) string {
	if isTime(err) {
		return errorTime
	}
	return errorStore
}

func isTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// tally collects a summary from everybody who works on a run.
type tally struct {
	mu sync.Mutex
	s  Summary
}

func newTally(start time.Time) *tally {
	return &tally{s: Summary{Start: start, Phases: map[string]int{}, Actions: map[string]int{}, Replacements: map[string]int{}, Errors: map[string]int{}}}
}

func (t *tally) change(f func(*Summary)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.s)
}

func (t *tally) did(what string) { t.change(func(s *Summary) { s.Actions[what]++ }) }

func (t *tally) read(n int) { t.change(func(s *Summary) { s.Proxies = n }) }

func (t *tally) due(n int) { t.change(func(s *Summary) { s.ProbesDue = n }) }

func (t *tally) decided(d Decision) {
	if d.Why != "" {
		t.change(func(s *Summary) { s.Replacements[string(d.Why)]++ })
	}
}

func (t *tally) failed(proxy, class, message string) {
	t.change(func(s *Summary) {
		s.Errors[class]++
		if len(s.Failures) < maxFailures {
			s.Failures = append(s.Failures, Failure{Proxy: proxy, Class: class, Message: clip(message, maxMessage)})
		}
	})
}

func (t *tally) incomplete(provider string) {
	t.change(func(s *Summary) { s.Incomplete = append(s.Incomplete, provider) })
}

func (t *tally) meltDown(provider string, is bool) {
	if is {
		t.change(func(s *Summary) { s.MeltDown = append(s.MeltDown, provider) })
	}
}

func (t *tally) outOfTime(last string) {
	t.change(func(s *Summary) { s.OutOfTime, s.cursor = true, last })
}

func (t *tally) catalog(writes int) {
	if writes > 0 {
		t.change(func(s *Summary) { s.Actions[didCatalog] += writes })
	}
}

func (t *tally) foundOrphans(n int, known map[string]time.Time, stop bool) {
	t.change(func(s *Summary) { s.Orphans, s.orphans, s.OrphansFrozen = n, known, stop })
}

func (t *tally) published(err error) {
	if err != nil {
		t.change(func(s *Summary) { s.PublishError = err.Error() })
	}
}

func (t *tally) fleet(after map[string]fleet.Proxy) {
	t.change(func(s *Summary) {
		for _, p := range after {
			s.Phases[string(p.Status.Phase)]++
			if c, ok := p.Status.Conditions.Get(fleet.ConditionReady); ok && c.Status {
				s.Ready++
			}
		}
	})
}

// end returns the summary of a run that ends now.
func (t *tally) end(now time.Time) Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.s
	s.Seconds = now.Sub(s.Start).Seconds()
	slices.Sort(s.MeltDown)
	slices.Sort(s.Incomplete)
	slices.SortStableFunc(s.Failures, func(a, b Failure) int { return cmp.Compare(a.Proxy, b.Proxy) })
	return s
}
