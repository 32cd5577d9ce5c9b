package reconcile

import (
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// View is all that Plan may know about one Proxy. Plan changes nothing in it.
type View struct {
	Now    time.Time // UTC, in microseconds
	Proxy  fleet.Proxy
	Faults fleet.Faults // what is wrong with the document, by itself and against what was accepted
	UID    string       // identity of the document
	Owner  string       // owner tag of this fleet's instances

	Cloud  Cloud
	Listed []provider.Instance // with this owner and uid, as the run's listing showed them
	Facts  map[string]Fact     // what calls of this run have shown, by instance name
	Slots  *[]store.Slot       // of this Proxy; nil: not looked up
	Entry  *fleet.Entry        // in the catalog as the run found it; nil: none

	SharesExit []string // other Proxies whose traffic leaves by the same address
	Jitter     float64  // in [0,1)
}

// Cloud is what Plan knows of the Proxy's provider.
type Cloud struct {
	Known      bool                 // it is configured
	Blind      bool                 // its listing showed nothing: nothing is asked of it, nothing concluded
	Partial    bool                 // its listing may lack what exists
	BrokeOff   bool                 // the listing ended early, so anything may be missing
	Silent     map[string]bool      // zones that the listing had no answer from
	Others     int                  // instances that may exist there and are not this Proxy's
	Max        int                  // instances that may exist at once; 0 means any number
	MayReplace bool                 // one more replacement may be under way
	MeltDown   bool                 // so many are unhealthy that it cannot be the instances
	Cooling    map[string]time.Time // zones without machines, and until when they are left alone
}

// Fact is what direct calls of this run have shown about one instance. Such facts outweigh listings,
// which may lag behind.
type Fact struct {
	Seen    *provider.Instance // it exists, and looked like this
	Absent  bool               // Get found no such instance
	Failure *provider.Error    // with Absent: why its launch failed, where the cloud knows
	GetErr  error              // nothing could be found out
	Deleted bool               // it was asked to go

	CreateErr error // the last create was answered with this; forgotten once it is recorded
	DeleteErr error // the last delete was answered with this; forgotten once it is recorded
}

// Decision is what Plan makes of a View. While Ask is not empty there is nothing else in it: the
// answers go into the View and Plan is asked again. Else Status is recorded first, if it differs from
// the Proxy's, and then the actions are taken in their order.
type Decision struct {
	Row     Row
	Ask     Ask
	Status  fleet.Status
	Fields  store.StatusFields
	Actions []Action
	Cool    map[string]time.Time // zones that turned out to have no machines, and until when
	Why     Reason               // why an instance is given up for another; empty: none is
	Holds   int                  // instances of this Proxy that may exist once this is carried out
}

// Changed reports whether the decision's status differs from what v's document says.
func (d Decision) Changed(v View) bool { return !sameStatus(d.Status, v.Proxy.Status) }

// Ask is what Plan must know before it can decide.
type Ask struct {
	Get   []provider.Ref // instances to look at
	Slots bool           // the Proxy's slots
}

// Empty reports whether nothing is asked.
func (a Ask) Empty() bool { return len(a.Get) == 0 && !a.Slots }

// Verb is a kind of action.
type Verb string

// The actions.
const (
	Create Verb = "create" // make the instance
	Delete Verb = "delete" // have the instance go
	Remove Verb = "remove" // free the slots and remove the document
)

// Action is one thing to be done.
type Action struct {
	Verb   Verb
	Ref    provider.Ref           // for Delete
	Create provider.CreateRequest // for Create; UserData is filled in by the run
}

// Row names the row of the table that a decision comes from.
type Row string

// The rows, in the order in which they are looked at.
const (
	RowAsk Row = "Ask" // something must be looked up first

	// Deletion was asked for.
	RowDrain     Row = "Drain"     // no new leases from now on
	RowDraining  Row = "Draining"  // leases are waited for
	RowTakeDown  Row = "TakeDown"  // instances are deleted, and waited for
	RowRemove    Row = "Remove"    // nothing is left but slots and document
	RowStranded  Row = "Stranded"  // instances may exist at a provider that is not configured any more
	RowUncertain Row = "Uncertain" // the cloud did not say what there is

	// Nothing is asked of a cloud.
	RowInvalid         Row = "Invalid"
	RowExternal        Row = "External"
	RowUnknownProvider Row = "UnknownProvider"
	RowPaused          Row = "Paused"

	// There is no instance, or one that nobody has seen yet.
	RowFailed      Row = "Failed"      // the cloud refuses it for good
	RowBackOff     Row = "BackOff"     // the last attempt is too fresh
	RowNoStock     Row = "NoStock"     // no zone of the spec has machines
	RowFull        Row = "Full"        // the provider's instances are at their cap
	RowCrowded     Row = "Crowded"     // two instances exist already
	RowCreate      Row = "Create"      // intent, then create
	RowCreateAgain Row = "CreateAgain" // the intent was recorded earlier
	RowRefused     Row = "Refused"     // the cloud has just said no
	RowNextZone    Row = "NextZone"    // the zone has no machines; another one may
	RowConflict    Row = "Conflict"    // somebody else has the name

	// There is an instance.
	RowProvisioning     Row = "Provisioning"
	RowProvisionTimeout Row = "ProvisionTimeout"
	RowOutdated         Row = "Outdated"  // the spec changed before it was up
	RowDeleting         Row = "Deleting"  // its deletion was decided and is waited for
	RowUnknown          Row = "Unknown"   // the cloud said something that we do not know
	RowSucceeded        Row = "Succeeded" // stopping, stopped or gone: the next incarnation
	RowNoAddress        Row = "NoAddress"
	RowRunning          Row = "Running"

	// It is to be replaced.
	RowReplaceFailed  Row = "ReplaceFailed"  // the cloud refuses its successor for good
	RowReplaceBackOff Row = "ReplaceBackOff" // the last attempt is too fresh
	RowMeltDown       Row = "MeltDown"       // unhealthy, but so are too many
	RowQueued         Row = "Queued"         // enough replacements are under way
	RowReplace        Row = "Replace"        // intent for a successor, then create
	RowDrainFirst     Row = "DrainFirst"     // no room for a successor beside it
	RowNextAgain      Row = "NextAgain"      // the successor's intent was recorded earlier
	RowNextBooting    Row = "NextBooting"
	RowNextProving    Row = "NextProving" // up, not healthy yet
	RowNextDropped    Row = "NextDropped" // came to nothing
	RowNextRejected   Row = "NextRejected"
	RowSwitch         Row = "Switch"
	RowSwitchBack     Row = "SwitchBack" // the successor died while its predecessor still drained
	RowDrainOld       Row = "DrainOld"   // leases on the predecessor are waited for
	RowDrained        Row = "Drained"    // they have ended: it is deleted
)

// Rows returns all rows, for tests that want to see each of them.
func Rows() []Row {
	return slices.Concat(
		[]Row{RowAsk, RowDrain, RowDraining, RowTakeDown, RowRemove, RowStranded, RowUncertain},
		[]Row{RowInvalid, RowExternal, RowUnknownProvider, RowPaused},
		[]Row{RowFailed, RowBackOff, RowNoStock, RowFull, RowCrowded, RowCreate, RowCreateAgain, RowRefused, RowNextZone, RowConflict},
		[]Row{RowProvisioning, RowProvisionTimeout, RowOutdated, RowDeleting, RowUnknown, RowSucceeded, RowNoAddress, RowRunning},
		[]Row{RowReplaceFailed, RowReplaceBackOff, RowMeltDown, RowQueued, RowReplace, RowDrainFirst, RowNextAgain, RowNextBooting,
			RowNextProving, RowNextDropped, RowNextRejected, RowSwitch, RowSwitchBack, RowDrainOld, RowDrained},
	)
}

// Reason says why an instance is succeeded by another.
type Reason string

// The reasons.
const (
	ReasonSpecChanged Reason = "SpecChanged"
	ReasonMaxAge      Reason = "MaxAge"
	ReasonRotate      Reason = "Rotate"
	ReasonUnhealthy   Reason = "Unhealthy"
	ReasonLost        Reason = "Lost"    // it does not exist any more
	ReasonStopped     Reason = "Stopped" // the cloud, or somebody, stopped it: the end of a spot VM
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{ReasonSpecChanged, ReasonMaxAge, ReasonRotate, ReasonUnhealthy, ReasonLost, ReasonStopped}
}
