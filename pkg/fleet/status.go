package fleet

import "time"

// Phase sums a status up for people; the plane decides nothing by it.
type Phase string

// The phases.
const (
	PhasePending      Phase = "Pending"
	PhaseProvisioning Phase = "Provisioning"
	PhaseRunning      Phase = "Running"
	PhaseReplacing    Phase = "Replacing"
	PhaseDraining     Phase = "Draining"
	PhaseDeleting     Phase = "Deleting"
	PhaseFailed       Phase = "Failed"
)

// Status is what the plane knows of a Proxy. Health, NextHealth and the conditions Healthy and Ready
// belong to the health function, everything else (and Ready, too) to reconcile. All of it can be
// rebuilt: losing a status loses history and nothing else.
type Status struct {
	UID   string `json:"uid,omitempty" firestore:"uid,omitempty"` // see UID
	Phase Phase  `json:"phase,omitempty" firestore:"phase,omitempty"`

	// Accepted is what the plane accepted last; immutability is judged against it.
	Accepted *Accepted `json:"accepted,omitempty" firestore:"accepted,omitempty"`

	// Incarnation is the highest incarnation ever intended; it only grows.
	Incarnation int64 `json:"incarnation,omitempty" firestore:"incarnation,omitempty"`
	// Instance is the current VM; recorded as an intent before it is created.
	Instance *Instance `json:"instance,omitempty" firestore:"instance,omitempty"`
	// Next is the VM that is to take over from Instance. After the switch, while leases on Instance
	// drain, Endpoint names Next already; when Instance is gone, Next becomes Instance.
	Next *Instance `json:"next,omitempty" firestore:"next,omitempty"`
	// Endpoint is where new leases go; nil while there is nowhere.
	Endpoint *StatusEndpoint `json:"endpoint,omitempty" firestore:"endpoint,omitempty"`
	// Drain is set while leases are waited for before a VM is deleted.
	Drain *Drain `json:"drain,omitempty" firestore:"drain,omitempty"`
	// Replacing says why Next exists or Instance is being drained for a successor.
	Replacing string `json:"replacing,omitempty" firestore:"replacing,omitempty"`

	Health     Health `json:"health,omitzero" firestore:"health"`         // of the instance behind Endpoint
	NextHealth Health `json:"nextHealth,omitzero" firestore:"nextHealth"` // of Next before the switch

	Retry      *Retry     `json:"retry,omitempty" firestore:"retry,omitempty"`
	Events     []Event    `json:"events,omitempty" firestore:"events,omitempty"` // newest last, at most MaxEvents
	Conditions Conditions `json:"conditions,omitempty" firestore:"conditions,omitempty"`
}

// MaxEvents is how many events a status keeps.
const MaxEvents = 10

// Accepted is the immutable part of the last valid spec.
type Accepted struct {
	Mode     Mode   `json:"mode" firestore:"mode"`
	Provider string `json:"provider,omitempty" firestore:"provider,omitempty"`
}

// Instance is one VM of a Proxy as the plane recorded it.
type Instance struct {
	Name        string    `json:"name" firestore:"name"`
	Incarnation int64     `json:"incarnation" firestore:"incarnation"`
	Zone        string    `json:"zone,omitempty" firestore:"zone,omitempty"`
	State       string    `json:"state,omitempty" firestore:"state,omitempty"` // a provider.State; empty: intended, not seen yet
	Address     string    `json:"address,omitempty" firestore:"address,omitempty"`
	SpecHash    string    `json:"specHash,omitempty" firestore:"specHash,omitempty"`
	Operation   string    `json:"operation,omitempty" firestore:"operation,omitempty"` // the cloud's, see provider.Ref
	IntentTime  time.Time `json:"intentTime,omitzero" firestore:"intentTime,omitzero"` // when the plane decided to create it
	CreateTime  time.Time `json:"createTime,omitzero" firestore:"createTime,omitzero"` // the cloud's; zero until seen
	Deleting    bool      `json:"deleting,omitempty" firestore:"deleting,omitempty"`   // its deletion was decided
}

// StatusEndpoint is the address that leases hand out.
type StatusEndpoint struct {
	Host        string    `json:"host" firestore:"host"`
	Port        int32     `json:"port" firestore:"port"`
	Incarnation int64     `json:"incarnation,omitempty" firestore:"incarnation,omitempty"` // 0 for External
	Since       time.Time `json:"since,omitzero" firestore:"since,omitzero"`
}

// Drain says since when leases are waited for, and how long at most.
type Drain struct {
	Reason   string    `json:"reason" firestore:"reason"`
	Since    time.Time `json:"since" firestore:"since"`
	Deadline time.Time `json:"deadline" firestore:"deadline"`
	// Incarnation whose leases are waited for; 0 means all leases of the Proxy.
	Incarnation int64 `json:"incarnation,omitempty" firestore:"incarnation,omitempty"`
}

// Outcome is the class of one probe.
type Outcome string

// The outcomes of a probe.
const (
	OutcomeOK             Outcome = "ok"
	OutcomeStatusMismatch Outcome = "status_mismatch" // the target answered another status
	OutcomeBodyMismatch   Outcome = "body_mismatch"   // the page lacks the marker
	OutcomeRedirect       Outcome = "redirect"        // the target answered 3xx
	OutcomeBlocked        Outcome = "blocked"         // the target answered 403 or 429
	OutcomeAuthFailed     Outcome = "auth_failed"     // the proxy answered 407
	OutcomeProxyError     Outcome = "proxy_error"     // the proxy refused the tunnel or spoke nonsense
	OutcomeRefused        Outcome = "refused"         // nothing listens at the proxy's address
	OutcomeDNS            Outcome = "dns"             // the proxy's name does not resolve
	OutcomeConnectTimeout Outcome = "connect_timeout" // no tunnel in time
	OutcomeTimeout        Outcome = "timeout"         // a tunnel, but no whole answer in time
	OutcomeReset          Outcome = "reset"           // the connection broke
	OutcomeTLS            Outcome = "tls"             // the target's certificate is not the target's
	OutcomeInconclusive   Outcome = "inconclusive"    // the judge is down; says nothing about the proxy
)

// Health is what probes of one incarnation have shown.
type Health struct {
	Incarnation          int64     `json:"incarnation,omitempty" firestore:"incarnation,omitempty"`
	Tick                 time.Time `json:"tick,omitzero" firestore:"tick,omitzero"` // of the last probe counted; older results are dropped
	LastProbeTime        time.Time `json:"lastProbeTime,omitzero" firestore:"lastProbeTime,omitzero"`
	Healthy              bool      `json:"healthy" firestore:"healthy"` // the verdict
	Outcome              Outcome   `json:"outcome,omitempty" firestore:"outcome,omitempty"`
	Detail               string    `json:"detail,omitempty" firestore:"detail,omitempty"` // for people, never a secret, at most 200 bytes
	LatencyMs            int64     `json:"latencyMs,omitempty" firestore:"latencyMs,omitempty"`
	ConsecutiveSuccesses int32     `json:"consecutiveSuccesses,omitempty" firestore:"consecutiveSuccesses,omitempty"` // stops at the threshold
	ConsecutiveFailures  int32     `json:"consecutiveFailures,omitempty" firestore:"consecutiveFailures,omitempty"`   // stops at the threshold
	UnhealthySince       time.Time `json:"unhealthySince,omitzero" firestore:"unhealthySince,omitzero"`
	ExitAddress          string    `json:"exitAddress,omitempty" firestore:"exitAddress,omitempty"`
}

// Retry says what failed last, and when the plane tries again.
type Retry struct {
	Attempts  int32     `json:"attempts" firestore:"attempts"`
	NotBefore time.Time `json:"notBefore,omitzero" firestore:"notBefore,omitzero"`
	Class     string    `json:"class" firestore:"class"` // NotFound, QuotaExceeded, Transient or Permanent
	Reason    string    `json:"reason,omitempty" firestore:"reason,omitempty"`
	Message   string    `json:"message,omitempty" firestore:"message,omitempty"`
	SpecHash  string    `json:"specHash,omitempty" firestore:"specHash,omitempty"` // the hash that was refused: another one is tried at once
}

// Event is one turn in a Proxy's fate.
type Event struct {
	Time    time.Time `json:"time" firestore:"time"`
	Reason  string    `json:"reason" firestore:"reason"` // UpperCamelCase, from a list
	Message string    `json:"message,omitempty" firestore:"message,omitempty"`
}
