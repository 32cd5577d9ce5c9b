package gce

import (
	"strconv"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// states maps the API's instance states. REPAIRING counts as running: the cloud works on it, and if
// that takes too long the probes have said so.
var states = map[string]provider.State{
	"PENDING":        provider.StateProvisioning,
	"PROVISIONING":   provider.StateProvisioning,
	"STAGING":        provider.StateProvisioning,
	"RUNNING":        provider.StateRunning,
	"REPAIRING":      provider.StateRunning,
	"PENDING_STOP":   provider.StateStopping,
	"STOPPING":       provider.StateStopping,
	"SUSPENDING":     provider.StateStopping,
	"DEPROVISIONING": provider.StateStopping,
	"STOPPED":        provider.StateTerminated,
	"SUSPENDED":      provider.StateTerminated,
	"TERMINATED":     provider.StateTerminated,
}

func stateOf(status string) provider.State {
	if state, known := states[status]; known {
		return state
	}
	return provider.StateUnknown
}

// instanceOf returns what the API says of an instance in our own words; address is one of the choices
// of Settings.Address.
func instanceOf(vm *computepb.Instance, address string) provider.Instance {
	labels := vm.GetLabels()
	// A label that is no number is not ours; 0 is no incarnation of anything.
	incarnation, _ := strconv.ParseInt(labels[labelIncarnation], 10, 64)
	return provider.Instance{
		Name:        vm.GetName(),
		Zone:        base(vm.GetZone()),
		State:       stateOf(vm.GetStatus()),
		Address:     addressOf(vm, address),
		Owner:       labels[labelOwner],
		UID:         labels[labelUID],
		Incarnation: incarnation,
		SpecHash:    labels[labelSpecHash],
		CreateTime:  timeOf(vm.GetCreationTimestamp()),
	}
}

// addressOf returns the chosen address of the first interface, or nothing: an external address comes
// only some time after the instance, and a stopped instance has none.
func addressOf(vm *computepb.Instance, choice string) string {
	if len(vm.GetNetworkInterfaces()) == 0 {
		return ""
	}
	nic := vm.GetNetworkInterfaces()[0]
	switch choice {
	case AddressInternal:
		return nic.GetNetworkIP()
	case AddressIPv6:
		for _, config := range nic.GetIpv6AccessConfigs() {
			if ip := config.GetExternalIpv6(); ip != "" {
				return ip
			}
		}
		return ""
	}
	for _, config := range nic.GetAccessConfigs() {
		if ip := config.GetNatIP(); ip != "" {
			return ip
		}
	}
	return ""
}

// timeOf reads the API's time format; it returns the zero time for anything else.
func timeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
