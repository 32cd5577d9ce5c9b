package gce

import (
	"fmt"
	"time"
)

// instance is an instance with the times at which something happened or will happen to it. Its status
// at any time follows from these.
type instance struct {
	key      key
	id       int64
	made     time.Time
	staged   time.Time // PROVISIONING until then
	booted   time.Time // STAGING until then
	stopAsk  time.Time // zero, or STOPPING from then
	stopEnd  time.Time // until then
	deletes  bool      // the end of stopping is that it is gone, else TERMINATED
	body     resource
	address  string // while running
	reported bool   // OnRunning was called and OnGone not yet
}

// status returns the API's status at a time; gone says that there is no such instance any more.
func (vm *instance) status(now time.Time) (status string, gone bool) {
	switch {
	case !vm.stopAsk.IsZero() && !now.Before(vm.stopEnd):
		return "TERMINATED", vm.deletes
	case !vm.stopAsk.IsZero() && !now.Before(vm.stopAsk):
		return "STOPPING", false
	case now.Before(vm.staged):
		return "PROVISIONING", false
	case now.Before(vm.booted):
		return "STAGING", false
	}
	return "RUNNING", false
}

// stop makes the instance stop at a time, unless it does so earlier anyway; deleting wins over stopping.
func (vm *instance) stop(at time.Time, takes time.Duration, deletes bool) {
	if vm.stopAsk.IsZero() || at.Before(vm.stopAsk) {
		vm.stopAsk, vm.stopEnd = at, at.Add(takes)
	} else if deletes && !vm.deletes && !at.Before(vm.stopEnd) {
		vm.stopAsk, vm.stopEnd = at, at.Add(takes) // it was stopped and is now deleted
	}
	vm.deletes = vm.deletes || deletes
}

// settle brings callbacks and the set of instances up to now.
func (s *Server) settle(now time.Time) {
	for k, vm := range s.instances {
		status, gone := vm.status(now)
		if status == "RUNNING" && !vm.reported {
			vm.reported = true
			vm.address = s.addressOf(vm)
		}
		if status != "RUNNING" {
			s.gone(vm)
		}
		if gone {
			delete(s.instances, k)
		}
	}
}

func (s *Server) addressOf(vm *instance) string {
	if s.opts.OnRunning != nil {
		return s.opts.OnRunning(vm.seen())
	}
	return fmt.Sprintf("203.0.113.%d", vm.id%254+1)
}

func (s *Server) gone(vm *instance) {
	if vm.reported && s.opts.OnGone != nil {
		s.opts.OnGone(vm.seen())
	}
	vm.reported, vm.address = false, ""
}

func (vm *instance) seen() Booted {
	b := Booted{Project: vm.key.project, Zone: vm.key.zone, Name: vm.key.name, Labels: vm.body.Labels, Metadata: map[string]string{}}
	if vm.body.Metadata != nil {
		for _, it := range vm.body.Metadata.Items {
			b.Metadata[it.Key] = it.Value
		}
	}
	return b
}

// resource returns the API's view of the instance.
func (vm *instance) resource(now time.Time) resource {
	r := vm.body
	zone := link(vm.key.project, "zones/"+vm.key.zone)
	r.Kind, r.ID, r.Zone = "compute#instance", fmt.Sprint(vm.id), zone
	r.Status, _ = vm.status(now)
	r.CreationTimestamp = stamp(vm.made)
	r.SelfLink = zone + "/instances/" + vm.key.name
	r.MachineType = link(vm.key.project, trimProject(vm.body.MachineType))
	r.LabelFingerprint, r.Fingerprint = "42WmSpB8rSM=", "jtn2HAgl_Qc="
	r.Disks = []disk{{
		Boot: true, AutoDelete: vm.body.Disks[0].AutoDelete, Kind: "compute#attachedDisk", DeviceName: "persistent-disk-0",
		Source: zone + "/disks/" + vm.key.name, DiskSizeGB: vm.body.Disks[0].InitializeParams.DiskSizeGB,
	}}
	r.NetworkInterfaces = vm.interfaces()
	return r
}

// interfaces are those of the request with the addresses of now. The first one's external address is
// what OnRunning said; where there is no external address, its internal one is.
func (vm *instance) interfaces() []networkInterface {
	out := append([]networkInterface(nil), vm.body.NetworkInterfaces...)
	for i := range out {
		nic := &out[i]
		nic.Kind, nic.Name = "compute#networkInterface", fmt.Sprintf("nic%d", i)
		nic.NetworkIP = fmt.Sprintf("10.142.%d.%d", vm.id/254%254, vm.id%254+1)
		nic.AccessConfigs = append([]accessConfig(nil), nic.AccessConfigs...)
		nic.IPv6AccessConfigs = append([]accessConfig(nil), nic.IPv6AccessConfigs...)
		switch {
		case i > 0 || vm.address == "":
		case len(nic.AccessConfigs) > 0:
			nic.AccessConfigs[0].NatIP = vm.address
		case len(nic.IPv6AccessConfigs) > 0:
			nic.IPv6AccessConfigs[0].ExternalIPv6 = vm.address
		default:
			nic.NetworkIP = vm.address
		}
	}
	return out
}

// End makes a running instance stop by itself, as a preemption, a shutdown from within or an operator
// would: it ends TERMINATED, or is gone if it was made with the termination action DELETE. It reports
// whether there is such an instance.
func (s *Server) End(project, zone, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	s.settle(now)
	vm := s.instances[key{project, zone, name}]
	if vm == nil {
		return false
	}
	deletes := vm.body.Scheduling != nil && vm.body.Scheduling.InstanceTerminationAction == "DELETE"
	vm.stop(now, s.opts.Stop, deletes)
	return true
}

// Vanish removes an instance without a trace, as no call does. It reports whether there was one.
func (s *Server) Vanish(project, zone, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(s.opts.Now())
	k := key{project, zone, name}
	vm := s.instances[k]
	if vm == nil {
		return false
	}
	s.gone(vm)
	delete(s.instances, k)
	return true
}

// Names returns the names of all instances that there are, in any state and no order.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(s.opts.Now())
	names := make([]string, 0, len(s.instances))
	for k := range s.instances {
		names = append(names, k.name)
	}
	return names
}
