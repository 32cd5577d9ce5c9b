package fleet

import "time"

// Gate is reconcile's part of whether a Proxy may be leased; GateOpen when nothing speaks against it.
type Gate string

// The gates.
const (
	GateOpen     Gate = ""
	GatePending  Gate = "Pending"  // no endpoint yet
	GateFailed   Gate = "Failed"   // the cloud refuses it for good
	GateRejected Gate = "Rejected" // the document breaks a rule
	GatePaused   Gate = "Paused"
	GateDraining Gate = "Draining" // being deleted or replaced without a successor
	GateDisabled Gate = "Disabled" // maxLeases is 0
)

// Entry is a Proxy in the catalog: what the lease function needs to know, and no more. It is
// derived from the document and can be rebuilt from it. Reconcile writes all of it. Health writes
// Verdict alone, the moment it flips; the lease function writes Quarantine alone.
type Entry struct {
	Host          string            `json:"host,omitempty" firestore:"host,omitempty"`
	Port          int32             `json:"port,omitempty" firestore:"port,omitempty"`
	Incarnation   int64             `json:"incarnation,omitempty" firestore:"incarnation,omitempty"` // behind Host; 0 for External
	Labels        map[string]string `json:"labels,omitempty" firestore:"labels,omitempty"`
	Mode          Mode              `json:"mode,omitempty" firestore:"mode,omitempty"`
	Provider      string            `json:"provider,omitempty" firestore:"provider,omitempty"`
	Region        string            `json:"region,omitempty" firestore:"region,omitempty"`
	Credentials   *SecretRef        `json:"credentials,omitempty" firestore:"credentials,omitempty"`
	Gate          Gate              `json:"gate,omitempty" firestore:"gate,omitempty"`
	GateReason    string            `json:"gateReason,omitempty" firestore:"gateReason,omitempty"` // for people
	MaxLeases     int32             `json:"maxLeases" firestore:"maxLeases"`
	Capacity      int32             `json:"capacity" firestore:"capacity"`                               // slots 0..Capacity-1 may be taken
	Ceiling       int32             `json:"ceiling" firestore:"ceiling"`                                 // no live slot is at or above it
	DrainDeadline time.Time         `json:"drainDeadline,omitzero" firestore:"drainDeadline,omitzero"`   // of leases below DrainingBelow, or of all when Gate is Draining
	DrainingBelow int64             `json:"drainingBelow,omitempty" firestore:"drainingBelow,omitempty"` // leases on incarnations below it end by DrainDeadline
	// NarrowTime is when reconcile last took something from new leases: it closed the gate, changed the
	// address or the incarnation, or lowered the capacity. A lease function that reads seldom may
	// grant by the older entry for some seconds more.
	NarrowTime time.Time            `json:"narrowTime,omitzero" firestore:"narrowTime,omitzero"`
	Verdict    Verdict              `json:"verdict" firestore:"verdict"`
	Quarantine map[string]time.Time `json:"quarantine,omitempty" firestore:"quarantine,omitempty"` // target host, encoded by QuarantineKey -> until
}

// Verdict is what health makes of a Proxy. Incarnation tells a stale verdict from a current one.
type Verdict struct {
	Healthy     bool      `json:"healthy" firestore:"healthy"`
	Outcome     Outcome   `json:"outcome,omitempty" firestore:"outcome,omitempty"`
	Incarnation int64     `json:"incarnation,omitempty" firestore:"incarnation,omitempty"`
	Since       time.Time `json:"since,omitzero" firestore:"since,omitzero"`
}

// Ready reports whether new leases may go to the Proxy, capacity aside.
func (e Entry) Ready() bool {
	return e.Gate == GateOpen && e.Host != "" && e.Verdict.Healthy && e.Verdict.Incarnation == e.Incarnation
}
