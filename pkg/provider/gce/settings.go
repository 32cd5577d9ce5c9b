package gce

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Settings is the gcp block of a providers file entry. Only Project is required; a field that is left
// out means the default which its comment gives.
type Settings struct {
	Project        string            `json:"project"`        // project id
	Network        string            `json:"network"`        // name or path; "default", or the subnetwork's own
	Subnetwork     string            `json:"subnetwork"`     // name in the zone's region, or path; the network's own
	Image          string            `json:"image"`          // path of an image or family with cloud-init; Ubuntu LTS
	NetworkTags    []string          `json:"networkTags"`    // for firewall rules; none
	ServiceAccount string            `json:"serviceAccount"` // the VM's identity; none, so a VM has no rights at all
	Labels         map[string]string `json:"labels"`         // further labels of VM and disk, for your bills
	Address        string            `json:"address"`        // which address is handed out: external (default), internal, ipv6
	NetworkTier    string            `json:"networkTier"`    // of the external IPv4 address: PREMIUM (default), STANDARD
	DiskType       string            `json:"diskType"`       // pd-standard
	DiskSizeGB     int64             `json:"diskSizeGb"`     // 10..65536; 10
	SecureBoot     *bool             `json:"secureBoot"`     // true; false for images with unsigned kernels
	UserDataKey    string            `json:"userDataKey"`    // user-data (cloud-init); startup-script for images without it
	MaxRunDuration time.Duration     `json:"maxRunDuration"` // the VM ends by itself after this, 30s..2880h; never
	RequestTimeout time.Duration     `json:"requestTimeout"` // of one HTTP request, 1s..10m; 30s
	Endpoint       string            `json:"endpoint"`       // for emulators (http, this machine) and private endpoints (https)
}

// The choices of Settings.Address.
const (
	AddressExternal = "external"
	AddressInternal = "internal"
	AddressIPv6     = "ipv6"
)

const (
	defaultEndpoint = "https://compute.googleapis.com"
	// Google's Debian images have no cloud-init and ignore user-data without a word; Ubuntu's run it.
	defaultImage = "projects/ubuntu-os-cloud/global/images/family/ubuntu-minimal-2404-lts-amd64"
	// The API allows 64 labels; this leaves room for our own.
	maxExtraLabels = 64 - 5
)

// settings is a Settings block that was checked, with defaults filled in.
type settings struct {
	Settings
	secureBoot bool
	plain      bool // the endpoint is asked without credentials
}

// fault is one thing that is wrong with a block.
type fault struct{ field, message string }

// faultFunc takes note of a fault.
type faultFunc func(field, format string, args ...any)

// resolve returns the block as it will be used, and every fault in it.
func (b Settings) resolve() (settings, []fault) {
	s := settings{Settings: b, secureBoot: b.SecureBoot == nil || *b.SecureBoot}
	s.Labels, s.NetworkTags = maps.Clone(b.Labels), slices.Clone(b.NetworkTags)
	s.Image = cmp.Or(b.Image, defaultImage)
	s.Address = cmp.Or(b.Address, AddressExternal)
	s.NetworkTier = cmp.Or(b.NetworkTier, "PREMIUM")
	s.DiskType = cmp.Or(b.DiskType, "pd-standard")
	s.DiskSizeGB = cmp.Or(b.DiskSizeGB, 10)
	s.UserDataKey = cmp.Or(b.UserDataKey, "user-data")
	s.RequestTimeout = cmp.Or(b.RequestTimeout, 30*time.Second)
	s.Endpoint = cmp.Or(strings.TrimSuffix(b.Endpoint, "/"), defaultEndpoint)
	var faults []fault
	note := func(field, format string, args ...any) {
		faults = append(faults, fault{field, fmt.Sprintf(format, args...)})
	}
	s.checkPlaces(note)
	s.checkLabels(note)
	s.checkMachine(note)
	s.checkTimes(note)
	s.plain = s.checkEndpoint(note)
	return s, faults
}

func (s settings) checkPlaces(fault faultFunc) {
	switch {
	case s.Project == "":
		fault("project", "is required")
	case !projectID.MatchString(s.Project):
		fault("project", "%q is not a project id", s.Project)
	}
	nameOrPath := func(field, value string) {
		if value != "" && !resourceName.MatchString(value) && !resourcePath.MatchString(value) {
			fault(field, "%q is neither a name nor a path such as projects/P/…", value)
		}
	}
	nameOrPath("network", s.Network)
	nameOrPath("subnetwork", s.Subnetwork)
	if !resourcePath.MatchString(s.Image) {
		fault("image", "%q is not a path such as projects/P/global/images/family/F", s.Image)
	}
}

func (s settings) checkLabels(fault faultFunc) {
	if len(s.Labels) > maxExtraLabels {
		fault("labels", "%d labels, at most %d", len(s.Labels), maxExtraLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		switch {
		case !labelKey.MatchString(key) || !labelValue.MatchString(s.Labels[key]):
			fault("labels", "%q: %q: lower-case letters, digits, - and _, at most 63, the key begins with a letter", key, s.Labels[key])
		case strings.HasPrefix(key, labelPrefix):
			fault("labels", "%q: keys that begin with %s are ours", key, labelPrefix)
		}
	}
	for _, tag := range s.NetworkTags {
		if !resourceName.MatchString(tag) {
			fault("networkTags", "%q is not a network tag", tag)
		}
	}
}

func (s settings) checkMachine(fault faultFunc) {
	if !slices.Contains([]string{AddressExternal, AddressInternal, AddressIPv6}, s.Address) {
		fault("address", "%q is none of external, internal, ipv6", s.Address)
	}
	if !slices.Contains([]string{"PREMIUM", "STANDARD"}, s.NetworkTier) {
		fault("networkTier", "%q is neither PREMIUM nor STANDARD", s.NetworkTier)
	}
	if s.ServiceAccount != "" && !serviceAccount.MatchString(s.ServiceAccount) {
		fault("serviceAccount", "%q is not the e-mail address of a service account", s.ServiceAccount)
	}
	if !resourceName.MatchString(s.DiskType) {
		fault("diskType", "%q is not a disk type", s.DiskType)
	}
	if s.DiskSizeGB < 10 || s.DiskSizeGB > 65536 {
		fault("diskSizeGb", "%d: must be between 10 and 65536", s.DiskSizeGB)
	}
	if s.UserDataKey != "user-data" && s.UserDataKey != "startup-script" {
		fault("userDataKey", "%q is neither user-data nor startup-script", s.UserDataKey)
	}
}

func (s settings) checkTimes(fault faultFunc) {
	if d := s.MaxRunDuration; d != 0 && (d < 30*time.Second || d > 120*24*time.Hour) {
		fault("maxRunDuration", "%s: must be between 30s and 2880h", d)
	}
	if d := s.RequestTimeout; d < time.Second || d > 10*time.Minute {
		fault("requestTimeout", "%s: must be between 1s and 10m", d)
	}
}

// checkEndpoint reports whether the endpoint is asked without credentials: that is so for plain HTTP,
// which must then not leave this machine, because user data travels on it.
func (s settings) checkEndpoint(fault faultFunc) (plain bool) {
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || (u.Scheme != "http" && u.Scheme != "https") {
		fault("endpoint", "%q is not a URL such as http://127.0.0.1:9200", s.Endpoint)
		return false
	}
	if u.Scheme == "https" {
		return false
	}
	if host := u.Hostname(); host != "localhost" && !net.ParseIP(host).IsLoopback() {
		fault("endpoint", "%q: plain http is for this machine only", s.Endpoint)
	}
	return true
}
