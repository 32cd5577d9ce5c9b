package gce

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The API's patterns.
const (
	namePattern = `(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)`
	maxValue    = 256 << 10
	maxMetadata = 512 << 10
)

var (
	nameShape     = regexp.MustCompile(`^` + namePattern + `$`)
	labelKey      = regexp.MustCompile(`^[a-z][-_a-z0-9]{0,62}$`)
	labelValue    = regexp.MustCompile(`^[-_a-z0-9]{0,63}$`)
	metadataKey   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	machineFamily = regexp.MustCompile(`^(e2|n1|n2|n2d|n4|c3|c4|t2d|t2a|f1|g1)-`)
	imagePath     = regexp.MustCompile(`(^|/)(projects/[^/]+/)?global/images/(family/)?[^/]+$`)
	email         = regexp.MustCompile(`^[^@]+@[^@]+$`)
)

// problem is one thing wrong with a request body.
type problem struct {
	field, value, why string
}

// validate returns all that is wrong with an instance to be made in k.
func validate(k key, b *resource) []problem {
	var found []problem
	bad := func(field string, value any, why string) {
		found = append(found, problem{field: "resource." + field, value: fmt.Sprint(value), why: why})
	}
	if !nameShape.MatchString(b.Name) {
		bad("name", b.Name, "Must be a match of regex '"+namePattern+"'")
	}
	if b.Kind != "" || b.ID != "" || b.Status != "" || b.CreationTimestamp != "" || b.Zone != "" || b.SelfLink != "" {
		bad("id", b.ID, "Output only members must not be set.")
	}
	validateMachine(k, b, bad)
	validateLabels("labels", b.Labels, bad)
	validateMetadata(b.Metadata, bad)
	validateDisks(k, b.Disks, bad)
	validateNetwork(k, b.NetworkInterfaces, bad)
	validateScheduling(b.Scheduling, bad)
	for i, account := range b.ServiceAccounts {
		if !email.MatchString(account.Email) || len(account.Scopes) == 0 {
			bad(fmt.Sprintf("serviceAccounts[%d].email", i), account.Email, "Must be an e-mail address with scopes.")
		}
	}
	if b.Tags != nil {
		for i, tag := range b.Tags.Items {
			if !nameShape.MatchString(tag) {
				bad(fmt.Sprintf("tags.items[%d]", i), tag, "Must be a match of regex '"+namePattern+"'")
			}
		}
	}
	return found
}

type badFunc func(field string, value any, why string)

func validateMachine(k key, b *resource, bad badFunc) {
	zonal, name, ok := strings.Cut(b.MachineType, "/machineTypes/")
	switch {
	case !ok || !strings.HasSuffix("/"+zonal, "/zones/"+k.zone):
		bad("machineType", b.MachineType, "The URL is malformed or names another zone.")
	case !machineFamily.MatchString(name):
		bad("machineType", b.MachineType, fmt.Sprintf("Machine type with name '%s' does not exist in zone '%s'.", name, k.zone))
	}
}

func validateLabels(field string, labels map[string]string, bad badFunc) {
	if len(labels) > 64 {
		bad(field, len(labels), "At most 64 labels.")
	}
	for name, value := range labels {
		if !labelKey.MatchString(name) || !labelValue.MatchString(value) {
			bad(field, name+"="+value, "Label keys and values have lower-case letters, digits, '-' and '_', at most 63.")
		}
	}
}

func validateMetadata(m *metadata, bad badFunc) {
	if m == nil {
		return
	}
	total, seen := 0, map[string]bool{}
	for i, it := range m.Items {
		total += len(it.Key) + len(it.Value)
		switch {
		case !metadataKey.MatchString(it.Key):
			bad(fmt.Sprintf("metadata.items[%d].key", i), it.Key, "Must be a match of regex '[a-zA-Z0-9-_]{1,128}'")
		case seen[it.Key]:
			bad(fmt.Sprintf("metadata.items[%d].key", i), it.Key, "Keys must be unique.")
		case len(it.Value) > maxValue:
			bad(fmt.Sprintf("metadata.items[%d].value", i), it.Value, "Metadata values are limited to 262144 bytes.")
		}
		seen[it.Key] = true
	}
	if total > maxMetadata {
		bad("metadata", total, "Metadata is limited to 524288 bytes.")
	}
}

func validateDisks(k key, disks []disk, bad badFunc) {
	boots := 0
	for i, d := range disks {
		if d.Boot {
			boots++
		}
		p := d.InitializeParams
		if p == nil {
			bad(fmt.Sprintf("disks[%d]", i), "", "The emulator knows only disks with initializeParams.")
			continue
		}
		if !imagePath.MatchString(p.SourceImage) {
			bad(fmt.Sprintf("disks[%d].initializeParams.sourceImage", i), p.SourceImage, "The referenced image resource cannot be found.")
		}
		if p.DiskType != "" && !strings.Contains("/"+p.DiskType, "/zones/"+k.zone+"/diskTypes/") {
			bad(fmt.Sprintf("disks[%d].initializeParams.diskType", i), p.DiskType, "The URL is malformed or names another zone.")
		}
		if p.DiskSizeGB != 0 && p.DiskSizeGB < 10 {
			bad(fmt.Sprintf("disks[%d].initializeParams.diskSizeGb", i), p.DiskSizeGB, "Must be at least 10.")
		}
		validateLabels(fmt.Sprintf("disks[%d].initializeParams.labels", i), p.Labels, bad)
	}
	if boots != 1 || len(disks) == 0 || !disks[0].Boot {
		bad("disks", len(disks), "Boot disk must be the first disk attached to the instance.")
	}
}

func validateNetwork(k key, nics []networkInterface, bad badFunc) {
	if len(nics) == 0 {
		bad("networkInterfaces", 0, "At least one network interface is required.")
	}
	region := k.zone[:strings.LastIndexByte(k.zone, '-')]
	for i, nic := range nics {
		field := fmt.Sprintf("networkInterfaces[%d]", i)
		if nic.Network == "" && nic.Subnetwork == "" {
			bad(field, "", "A network or a subnetwork is required.")
		}
		if nic.Network != "" && !strings.Contains("/"+nic.Network, "/global/networks/") {
			bad(field+".network", nic.Network, "The URL is malformed.")
		}
		if nic.Subnetwork != "" && !strings.Contains("/"+nic.Subnetwork, "/regions/"+region+"/subnetworks/") {
			bad(field+".subnetwork", nic.Subnetwork, "The URL is malformed or names another region.")
		}
		for _, c := range nic.AccessConfigs {
			if c.Type != "ONE_TO_ONE_NAT" || !slices.Contains([]string{"", "PREMIUM", "STANDARD"}, c.NetworkTier) {
				bad(field+".accessConfigs", c.Type, "Must be ONE_TO_ONE_NAT of a known tier.")
			}
		}
		for _, c := range nic.IPv6AccessConfigs {
			if c.Type != "DIRECT_IPV6" || c.NetworkTier != "PREMIUM" || nic.StackType == "" || nic.StackType == "IPV4_ONLY" {
				bad(field+".ipv6AccessConfigs", c.Type, "Must be DIRECT_IPV6 of tier PREMIUM on a dual-stack interface.")
			}
		}
	}
}

func validateScheduling(s *scheduling, bad badFunc) {
	if s == nil {
		return
	}
	spot := s.ProvisioningModel == "SPOT"
	ends := s.InstanceTerminationAction
	switch {
	case !spot && s.ProvisioningModel != "STANDARD" && s.ProvisioningModel != "":
		bad("scheduling.provisioningModel", s.ProvisioningModel, "Must be STANDARD or SPOT.")
	case spot && s.AutomaticRestart != nil && *s.AutomaticRestart:
		bad("scheduling.automaticRestart", true, "Scheduling must have automaticRestart be false when preemptible is true.")
	case spot && s.OnHostMaintenance == "MIGRATE":
		bad("scheduling.onHostMaintenance", s.OnHostMaintenance, "Spot instances cannot migrate.")
	case !slices.Contains([]string{"", "STOP", "DELETE"}, ends):
		bad("scheduling.instanceTerminationAction", ends, "Must be STOP or DELETE.")
	case !spot && s.MaxRunDuration == nil && ends != "":
		bad("scheduling.instanceTerminationAction", ends, "Only for instances that are spot or have a maximum run duration.")
	case s.MaxRunDuration != nil && ends == "":
		bad("scheduling.instanceTerminationAction", ends, "Required with a maximum run duration.")
	}
	if d := s.MaxRunDuration; d != nil && (d.Seconds < 30 || d.Seconds > 120*24*3600) {
		bad("scheduling.maxRunDuration", d.Seconds, "Must be between 30 seconds and 120 days.")
	}
}

// answerOf turns problems into one answer, with an entry for each.
func answerOf(problems []problem) answer {
	first := problems[0]
	a := invalid(first.field, first.value, first.why)
	body := a.body.(errorBody)
	body.Error.Errors = nil
	for _, p := range problems {
		one := invalid(p.field, p.value, p.why).body.(errorBody).Error.Errors[0]
		body.Error.Errors = append(body.Error.Errors, one)
	}
	return answer{status: http.StatusBadRequest, body: body}
}
