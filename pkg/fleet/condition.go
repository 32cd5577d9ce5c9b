package fleet

import (
	"slices"
	"time"
)

// ConditionType names a condition.
type ConditionType string

// The conditions of a Proxy.
const (
	ConditionAccepted          ConditionType = "Accepted"          // the document keeps the rules
	ConditionProvisioned       ConditionType = "Provisioned"       // there is an instance with an address
	ConditionHealthy           ConditionType = "Healthy"           // probes pass
	ConditionReady             ConditionType = "Ready"             // it can be leased
	ConditionExitAddressShared ConditionType = "ExitAddressShared" // warning: another Managed proxy leaves by the same address
)

// Condition is one aspect of a Proxy's state. Reason is UpperCamelCase from a list; Message is for
// people. LastTransitionTime moves only when Status flips.
type Condition struct {
	Type               ConditionType `json:"type" firestore:"type"`
	Status             bool          `json:"status" firestore:"status"`
	Reason             string        `json:"reason" firestore:"reason"`
	Message            string        `json:"message,omitempty" firestore:"message,omitempty"`
	LastTransitionTime time.Time     `json:"lastTransitionTime" firestore:"lastTransitionTime"`
}

// Conditions are unique by type, in the order of their first setting. Stored, they are a map from type to condition, so that
// two writers never touch each other's.
type Conditions []Condition

// Get returns the condition of type t.
func (c Conditions) Get(t ConditionType) (Condition, bool) {
	for _, have := range c {
		if have.Type == t {
			return have, true
		}
	}
	return Condition{}, false
}

// Set adds or replaces the condition of set's type and reports whether anything changed.
// LastTransitionTime becomes now when the status flips or the condition is new, else it stays. Copies
// of *c that were made before keep what they had.
func (c *Conditions) Set(set Condition, now time.Time) (changed bool) {
	set.LastTransitionTime = now.UTC().Truncate(time.Microsecond)
	for i, have := range *c {
		if have.Type != set.Type {
			continue
		}
		if have.Status == set.Status {
			set.LastTransitionTime = have.LastTransitionTime
		}
		if have == set {
			return false
		}
		*c = slices.Clone(*c)
		(*c)[i] = set
		return true
	}
	*c = append(slices.Clip(*c), set)
	return true
}

// Drop removes the condition of type t and reports whether there was one. Copies of *c that were made
// before keep it.
func (c *Conditions) Drop(t ConditionType) bool {
	for i, have := range *c {
		if have.Type == t {
			*c = append((*c)[:i:i], (*c)[i+1:]...)
			return true
		}
	}
	return false
}
