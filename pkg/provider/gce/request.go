package gce

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// maxUserData is the API's limit for one metadata value: 256 KiB.
const maxUserData = 256 << 10

// metadataPort is the metadata key that tells the VM on which port its proxy is expected.
const metadataPort = "proxyfleet-port"

// check reports all that makes req impossible to ask for, before anything is asked.
func check(req provider.CreateRequest) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !resourceName.MatchString(req.Name) {
		fault("name %q is not an instance name", req.Name)
	}
	switch {
	case req.Zone == "":
		fault("a zone is needed")
	case !zoneName.MatchString(req.Zone):
		fault("zone %q is not a zone name", req.Zone)
	case req.Region != "" && regionOf(req.Zone) != req.Region:
		fault("zone %s is not in region %s", req.Zone, req.Region)
	}
	if !resourceName.MatchString(req.MachineType) {
		fault("machine type %q is not a machine type", req.MachineType)
	}
	if req.Owner == "" {
		fault("an owner is needed")
	}
	for _, label := range [][2]string{{"owner", req.Owner}, {"uid", req.UID}, {"spec hash", req.SpecHash}, {"proxy name", req.ProxyName}} {
		if !labelValue.MatchString(label[1]) {
			fault("%s %q is not a label value", label[0], label[1])
		}
	}
	if req.Incarnation < 1 {
		fault("incarnation %d: must be 1 or more", req.Incarnation)
	}
	if len(req.UserData) > maxUserData {
		fault("user data has %d bytes, at most %d", len(req.UserData), maxUserData)
	}
	return errors.Join(faults...)
}

// insertRequest returns the API's request for the instance that req describes. It depends on nothing
// but its arguments.
func (s settings) insertRequest(req provider.CreateRequest, requestID string) *computepb.InsertInstanceRequest {
	return &computepb.InsertInstanceRequest{
		Project:   s.Project,
		Zone:      req.Zone,
		RequestId: proto.String(requestID),
		InstanceResource: &computepb.Instance{
			Name:                   proto.String(req.Name),
			Description:            proto.String("crawl proxy " + req.ProxyName + ", managed by proxyfleet"),
			MachineType:            proto.String("zones/" + req.Zone + "/machineTypes/" + req.MachineType),
			Labels:                 s.labels(req),
			Tags:                   s.tags(),
			Metadata:               s.metadata(req),
			Disks:                  []*computepb.AttachedDisk{s.bootDisk(req)},
			NetworkInterfaces:      []*computepb.NetworkInterface{s.networkInterface(req.Zone)},
			Scheduling:             s.scheduling(req.Spot),
			ServiceAccounts:        s.serviceAccounts(),
			ShieldedInstanceConfig: s.shielded(),
		},
	}
}

func (s settings) tags() *computepb.Tags {
	if len(s.NetworkTags) == 0 {
		return nil
	}
	return &computepb.Tags{Items: s.NetworkTags}
}

func (s settings) metadata(req provider.CreateRequest) *computepb.Metadata {
	item := func(key, value string) *computepb.Items {
		return &computepb.Items{Key: proto.String(key), Value: proto.String(value)}
	}
	items := []*computepb.Items{
		item(metadataPort, fmt.Sprint(req.Port)),
		item("block-project-ssh-keys", "TRUE"), // whoever may log in to other VMs must not see credentials here
		item("serial-port-enable", "FALSE"),
	}
	if req.UserData != "" {
		items = append(items, item(s.UserDataKey, req.UserData))
	}
	return &computepb.Metadata{Items: items}
}

// bootDisk goes with its instance, or disks of proxies long gone would stay on the bill.
func (s settings) bootDisk(req provider.CreateRequest) *computepb.AttachedDisk {
	return &computepb.AttachedDisk{
		Boot:       proto.Bool(true),
		AutoDelete: proto.Bool(true),
		InitializeParams: &computepb.AttachedDiskInitializeParams{
			SourceImage: proto.String(s.Image),
			DiskSizeGb:  proto.Int64(s.DiskSizeGB),
			DiskType:    proto.String("zones/" + req.Zone + "/diskTypes/" + s.DiskType),
			Labels:      s.labels(req),
		},
	}
}

func (s settings) networkInterface(zone string) *computepb.NetworkInterface {
	nic := &computepb.NetworkInterface{}
	if s.Subnetwork != "" {
		nic.Subnetwork = proto.String(pathOr("regions/"+regionOf(zone)+"/subnetworks/", s.Subnetwork))
	}
	switch {
	case s.Network != "":
		nic.Network = proto.String(pathOr("global/networks/", s.Network))
	case s.Subnetwork == "":
		nic.Network = proto.String("global/networks/default")
	}
	switch s.Address {
	case AddressExternal:
		nic.AccessConfigs = []*computepb.AccessConfig{{
			Name:        proto.String("external-nat"),
			Type:        proto.String("ONE_TO_ONE_NAT"),
			NetworkTier: proto.String(s.NetworkTier),
		}}
	case AddressIPv6:
		nic.StackType = proto.String("IPV4_IPV6")
		nic.Ipv6AccessConfigs = []*computepb.AccessConfig{{
			Name:        proto.String("external-ipv6"),
			Type:        proto.String("DIRECT_IPV6"),
			NetworkTier: proto.String("PREMIUM"), // the API has no other for IPv6
		}}
	}
	return nic
}

// scheduling says how the instance ends. Stopping is the API's default for spot and would leave a
// stopped VM that keeps its name and its disk, so every automatic end is a deletion.
func (s settings) scheduling(spot bool) *computepb.Scheduling {
	out := &computepb.Scheduling{
		ProvisioningModel: proto.String("STANDARD"),
		AutomaticRestart:  proto.Bool(true),
		OnHostMaintenance: proto.String("MIGRATE"),
	}
	if spot {
		out.ProvisioningModel = proto.String("SPOT")
		out.AutomaticRestart = proto.Bool(false)
		out.OnHostMaintenance = proto.String("TERMINATE")
	}
	if s.MaxRunDuration > 0 {
		out.MaxRunDuration = &computepb.Duration{Seconds: proto.Int64(int64(s.MaxRunDuration / time.Second))}
	}
	if spot || s.MaxRunDuration > 0 {
		out.InstanceTerminationAction = proto.String("DELETE")
	}
	return out
}

// serviceAccounts is empty unless one is configured: then whoever gets at the metadata server through
// the proxy finds no token there.
func (s settings) serviceAccounts() []*computepb.ServiceAccount {
	if s.ServiceAccount == "" {
		return nil
	}
	return []*computepb.ServiceAccount{{
		Email:  proto.String(s.ServiceAccount),
		Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"}, // rights are IAM's business
	}}
}

func (s settings) shielded() *computepb.ShieldedInstanceConfig {
	return &computepb.ShieldedInstanceConfig{
		EnableSecureBoot:          proto.Bool(s.secureBoot),
		EnableVtpm:                proto.Bool(true),
		EnableIntegrityMonitoring: proto.Bool(true),
	}
}

// pathOr returns value, under prefix where it is a bare name.
func pathOr(prefix, value string) string {
	if strings.Contains(value, "/") {
		return value
	}
	return prefix + value
}

// requestSpace is the name space of our request ids.
var requestSpace = uuid.MustParse("5b0f4a52-6d3c-5f0e-9a3b-0f4c1d1f7a60")

// requestID returns the id under which the API knows a repeated insert. It is derived from all that
// makes two inserts the same attempt: name, zone, minute and, for another try, the operation that
// failed. The minute is in it because the API answers a known id with the old operation, a failed one
// too: without it no later attempt would ever be made. Across minutes the name keeps the instance
// single.
func requestID(name, zone string, now time.Time, failed string) string {
	minute := now.UTC().Truncate(time.Minute).Format(time.RFC3339)
	return uuid.NewSHA1(requestSpace, []byte(strings.Join([]string{name, zone, minute, failed}, "\n"))).String()
}
