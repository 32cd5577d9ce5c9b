package fleet

import "time"

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
