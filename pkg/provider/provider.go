// Package provider is the contract between the control plane and a cloud that runs proxy VMs.
package provider

import (
	"context"
	"time"
)

// Provider creates, observes and deletes the VMs of one configured cloud account.
//
// Every method may be called twice and concurrently, from several processes. A method that is given
// an ended context returns that context's error unchanged and leaves nothing half made that the same
// call, made again, would not pick up. Errors carry one of the classes of this package (see ClassOf);
// an error without a class counts as ErrTransient. Providers never log, retry, count or wait: their
// callers do.
type Provider interface {
	// Create asks for the instance that req describes and returns without waiting for it to boot.
	// It is idempotent by name: when an instance of that name with the same owner, uid, incarnation
	// and spec hash exists, that instance is returned, however often and however concurrently Create
	// is called. When the name is taken by anything else the error is ErrPermanent with reason
	// ReasonNameConflict and nothing is changed. A lost answer is repaired by calling again.
	Create(ctx context.Context, req CreateRequest) (Instance, error)

	// Get returns the instance that ref names, or ErrNotFound when it is absent. Where the cloud had
	// accepted a Create and failed it later, the ErrNotFound also carries that failure: see
	// LaunchFailure. An outage is never reported as ErrNotFound.
	Get(ctx context.Context, ref Ref) (Instance, error)

	// Delete asks for the instance to go and returns without waiting for it. An absent instance is
	// success, and so is one that is already going. The caller is sure to own what it names.
	Delete(ctx context.Context, ref Ref) error

	// ListByTag returns all instances, in any state, whose owner tag equals tag, from all pages, in
	// no particular order. When part of the cloud could not be asked it returns what it saw together
	// with an *IncompleteError: an instance that is missing from such a view may well exist.
	ListByTag(ctx context.Context, tag string) ([]Instance, error)
}

// Ref names one instance. Name alone identifies it; the other fields are hints which save look-ups
// and which a provider may ignore.
type Ref struct {
	Name      string // instance name, see InstanceName
	Zone      string // zone it was asked for in; empty where unknown
	Operation string // Instance.Operation as Create returned it; lets Get report a failed launch
}

// CreateRequest describes one instance completely; equal requests make equal instances.
type CreateRequest struct {
	Name        string // RFC 1035 label of at most 63 characters, see InstanceName
	Owner       string // owner tag: whose control plane this is; a valid label value
	UID         string // uid of the Proxy; a valid label value
	Incarnation int64  // which instance of that Proxy, from 1
	SpecHash    string // hash of all that needs a new VM when it changes; a valid label value
	ProxyName   string // document name, for people who read the cloud's console; a valid label value

	Region      string // may be empty where the provider needs none
	Zone        string // the one zone to try; may be empty where the provider needs none
	MachineType string
	Spot        bool
	UserData    string // cloud-init document; may be empty
	Port        int32  // port on which the proxy will listen, 1..65535
}

// Ref returns the reference under which the requested instance is found again.
func (r CreateRequest) Ref() Ref { return Ref{Name: r.Name, Zone: r.Zone} }

// State is what an instance does at the moment.
type State string

// The states of an instance. A cloud's own states are mapped onto them in one place per provider.
const (
	StateProvisioning State = "Provisioning" // accepted, not yet booted
	StateRunning      State = "Running"      // booted; whether it proxies is for a probe to say
	StateStopping     State = "Stopping"     // on its way out, name still taken
	StateTerminated   State = "Terminated"   // stopped but still there, name still taken: delete it
	StateUnknown      State = "Unknown"      // the cloud said something that we do not know: never act on it
)

// Instance is one VM as a provider sees it.
type Instance struct {
	Name        string
	Zone        string
	State       State
	Address     string // address at which crawlers reach it, without port; empty until known
	Owner       string // owner tag; empty when it carries none
	UID         string
	Incarnation int64
	SpecHash    string
	CreateTime  time.Time
	Operation   string // pending operation of the cloud, to be handed back in Ref; may be empty
}

// Ref returns the reference to this instance.
func (i Instance) Ref() Ref { return Ref{Name: i.Name, Zone: i.Zone, Operation: i.Operation} }
