package reconcile

import (
	"net"
	"strconv"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// The reasons of events, which tell a Proxy's fate.
const (
	EventIdentity     = "StatusReset"      // the status was another document's
	EventRejected     = "Rejected"         // the document breaks a rule
	EventAccepted     = "Accepted"         // it keeps the rules again
	EventEndpoint     = "EndpointChanged"  // leases go to another address
	EventCreating     = "Creating"         // an instance is asked for
	EventAdopted      = "Adopted"          // an instance of ours without a record
	EventRunning      = "Running"          // an instance has come up
	EventRefused      = "CreateFailed"     // the cloud refused, or the launch came to nothing
	EventZone         = "ZoneChanged"      // another zone is tried
	EventTimeout      = "ProvisionTimeout" // it did not come up in time
	EventLost         = "InstanceLost"     // it does not exist any more
	EventStopped      = "InstanceStopped"  // the cloud, or somebody, stopped it
	EventReplacing    = "Replacing"        // a successor is asked for
	EventSwitched     = "Switched"         // new leases go to the successor
	EventNextFailed   = "SuccessorFailed"  // the successor came to nothing
	EventDraining     = "Draining"         // leases are waited for
	EventDrainEnded   = "DrainCancelled"   // there is no reason to drain any more
	EventDeleting     = "Deleting"         // an instance is asked to go
	EventDeleted      = "Deleted"          // it has gone
	EventDeleteFailed = "DeleteFailed"     // the cloud refused to delete it
	EventDuplicate    = "DuplicateDeleted" // one instance too many
)

func address(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// named is how events speak of an instance.
func named(i *fleet.Instance) string {
	s := i.Name
	if i.Zone != "" {
		s += " in " + i.Zone
	}
	return s
}
