package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	maxLabels = 32
	maxZones  = 16
	// maxUserData is Compute Engine's limit for one metadata value, in bytes. It also keeps a document
	// far below Firestore's 1 MiB: everything else in it is bounded, too.
	maxUserData = 256 << 10
	// maxMarker bounds, in bytes, the marker that a page must contain; a probe reads 64 KiB.
	maxMarker = 1 << 10
	// maxSecretKey bounds the member's name of a secret that is a JSON object, in bytes.
	maxSecretKey = 255
)

const (
	mustBeCloudName = "must be at most 63 lower-case letters, digits and hyphens, beginning with a letter, ending with a letter or digit"
	mustBeSecret    = "must be the name of a secret: 1 to 255 letters, digits, '_' and '-'"
	mustBeSecretKey = "must be at most 255 bytes"
	mustBeInRegion  = "must be in spec.placement.region, or in one region where there is none"
)

// formats returns the rules of what single fields may look like.
func formats() []rule {
	return slices.Concat(metadataFormats(), placementFormats(), endpointFormats(), healthFormats())
}

func metadataFormats() []rule {
	return []rule{
		{"name", "metadata.name", "must be 1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit", breaks(func(c change) (string, bool) {
			return quote(c.Name), !dnsLabel.MatchString(c.Name)
		})},
		{"labels", "metadata.labels", fmt.Sprintf("must be at most %d", maxLabels), breaks(func(c change) (string, bool) {
			return strconv.Itoa(len(c.Labels)), len(c.Labels) > maxLabels
		})},
		{"label-key", "metadata.labels", "must have a key of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", func(c change, fault func(at, value string)) {
			for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
				if !validLabelKey(k) {
					fault("."+PrintableKey(k), "")
				}
			}
		}},
		{"label-value", "metadata.labels", "must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", func(c change, fault func(at, value string)) {
			for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
				if !labelValue.MatchString(c.Labels[k]) {
					fault("."+PrintableKey(k), quote(c.Labels[k]))
				}
			}
		}},
		{"mode", "spec.mode", "must be Managed or External", breaks(func(c change) (string, bool) {
			return optional(string(c.Spec.Mode)), !known(c.Spec.Mode)
		})},
		{"provider", "spec.provider", "must be a name from the providers file: at most 63 characters without spaces", breaks(func(c change) (string, bool) {
			return quote(c.Spec.Provider), !validProvider(c.Spec.Provider)
		})},
	}
}

func placementFormats() []rule {
	name := func(id string, get func(Placement) string) rule {
		return rule{id, "spec.placement." + id, mustBeCloudName, breaks(func(c change) (string, bool) {
			value := get(c.Spec.placement())
			return quote(value), value != "" && !cloudName.MatchString(value)
		})}
	}
	zones := func(wrong func(p Placement, zone string) bool) func(change, func(at, value string)) {
		return func(c change, fault func(at, value string)) {
			p := c.Spec.placement()
			for i, z := range p.Zones {
				if wrong(p, z) {
					fault(fmt.Sprintf("[%d]", i), quote(z))
				}
			}
		}
	}
	return []rule{
		name("region", func(p Placement) string { return p.Region }),
		name("zone", func(p Placement) string { return p.Zone }),
		name("machineType", func(p Placement) string { return p.MachineType }),
		{"zone-count", "spec.placement.zones", fmt.Sprintf("must be at most %d", maxZones), breaks(func(c change) (string, bool) {
			n := len(c.Spec.placement().Zones)
			return strconv.Itoa(n), n > maxZones
		})},
		{"zones", "spec.placement.zones", mustBeCloudName, zones(func(_ Placement, z string) bool { return !cloudName.MatchString(z) })},
		{"zone-region", "spec.placement.zone", mustBeInRegion, breaks(func(c change) (string, bool) {
			p := c.Spec.placement()
			return quote(p.Zone), p.Zone != "" && !p.holds(p.Zone)
		})},
		{"zones-region", "spec.placement.zones", mustBeInRegion, zones(func(p Placement, z string) bool { return !p.holds(z) })},
	}
}

// placement returns the placement, the zero one where there is none.
func (s Spec) placement() Placement {
	if s.Placement == nil {
		return Placement{}
	}
	return *s.Placement
}

// holds reports whether a zone is in the placement's region or, where that is left out, in the region
// of the zone that comes first. Zones are named "{region}-{letter}".
func (p Placement) holds(zone string) bool {
	if p.Region != "" {
		return strings.HasPrefix(zone, p.Region+"-")
	}
	first := Spec{Placement: &p}.ZonesInOrder()
	return len(first) == 0 || regionOf(zone) == regionOf(first[0])
}

func regionOf(zone string) string { return zone[:max(0, strings.LastIndexByte(zone, '-'))] }

func endpointFormats() []rule {
	return slices.Concat([]rule{
		{"inline", "spec.cloudInit.inline", fmt.Sprintf("must be at most %d bytes", maxUserData), breaks(func(c change) (string, bool) {
			return "", c.Spec.CloudInit != nil && len(c.Spec.CloudInit.Inline) > maxUserData
		})},
		{"host", "spec.endpoint.host", "must be a host name, an IPv4 or an IPv6 address, without scheme, port and brackets", breaks(func(c change) (string, bool) {
			host := c.Spec.Endpoint.Host
			return quote(host), host != "" && !validHost(host)
		})},
	}, secretFormats("cloud-init-secret", "spec.cloudInit.secretRef", func(s Spec) *SecretRef {
		if s.CloudInit == nil {
			return nil
		}
		return s.CloudInit.SecretRef
	}), secretFormats("credentials-secret", "spec.endpoint.credentialsSecretRef", func(s Spec) *SecretRef { return s.Endpoint.CredentialsSecretRef }))
}

// secretFormats never show a value: what stands where a secret's name belongs may be the secret.
func secretFormats(id, path string, get func(Spec) *SecretRef) []rule {
	return []rule{
		{id, path + ".name", mustBeSecret, breaks(func(c change) (string, bool) {
			r := get(c.Spec)
			return "", r != nil && !secretName.MatchString(r.Name)
		})},
		{id + "-key", path + ".key", mustBeSecretKey, breaks(func(c change) (string, bool) {
			r := get(c.Spec)
			return "", r != nil && len(r.Key) > maxSecretKey
		})},
	}
}

func healthFormats() []rule {
	const path = "spec.healthCheck."
	word := func(id, field, message string, get func(HealthCheck) string, ok func(string) bool) rule {
		return rule{id, path + field, message, breaks(func(c change) (string, bool) {
			value := get(c.Spec.healthCheck())
			return quote(value), value != "" && !ok(value)
		})}
	}
	oneOf := func(words ...string) func(string) bool {
		return func(s string) bool { return slices.Contains(words, s) }
	}
	return []rule{
		{"url", path + "url", "must be an http or https URL with a host and without credentials", breaks(func(c change) (string, bool) {
			u := c.Spec.healthCheck().URL
			return "", u != "" && !validTarget(u) // not shown: its query may hold a key
		})},
		{"body-contains", path + "bodyContains", fmt.Sprintf("must be at most %d bytes", maxMarker), breaks(func(c change) (string, bool) {
			return "", len(c.Spec.healthCheck().BodyContains) > maxMarker
		})},
		{"timeout-below-interval", path + "timeoutSeconds", "must be below intervalSeconds", breaks(func(c change) (string, bool) {
			h := c.Spec.HealthCheckOrDefault()
			unknown := h.IntervalSeconds < 0 || c.Broken.at(path+"intervalSeconds") // then the interval's own fault is enough
			return strconv.Itoa(int(h.TimeoutSeconds)), h.TimeoutSeconds >= h.IntervalSeconds && !unknown
		})},
		word("on-blocked", "onBlocked", "must be Unhealthy or Ignore", func(h HealthCheck) string { return h.OnBlocked }, oneOf(OnBlockedUnhealthy, OnBlockedIgnore)),
		word("exit-address-from", "exitAddressFrom", "must be header or body", func(h HealthCheck) string { return h.ExitAddressFrom }, oneOf("header", "body")),
		word("exit-address-header", "exitAddressHeader", "must be the name of a header", func(h HealthCheck) string { return h.ExitAddressHeader }, headerName.MatchString),
	}
}

func (s Spec) healthCheck() HealthCheck {
	if s.HealthCheck == nil {
		return HealthCheck{}
	}
	return *s.HealthCheck
}
