package fleet

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate returns all faults of a document that can be seen without knowing what it was before: what
// did not decode, the rules R3 to R7, ranges and formats.
func Validate(p Proxy) Faults { return validate(nil, p) }

// ValidateUpdate returns all faults of next, those included that come from what it was before: mode
// and provider are immutable. Before is old's accepted state, or old's spec where the plane has not
// accepted it yet.
func ValidateUpdate(old, next Proxy) Faults {
	before := old.Status.Accepted
	if before == nil && old.Spec.Mode != "" {
		before = &Accepted{Mode: old.Spec.Mode, Provider: old.Spec.Provider}
	}
	return validate(before, next)
}

func validate(before *Accepted, p Proxy) Faults {
	c := checker{faults: slices.Clone(p.Broken)}
	c.name(p.Name)
	c.labels(p.Labels)
	c.mode(p.Spec.Mode)
	for _, r := range rules() {
		if path, value, broken := r.check(before, p); broken && !c.has(path) {
			c.faults = append(c.faults, Fault{Rule: r.id, Path: path, Value: value, Message: r.message})
		}
	}
	c.spec(p.Spec)
	return c.faults
}

// checker collects the faults of ranges and formats. A path that did not decode is not judged twice.
type checker struct{ faults Faults }

func (c *checker) has(path string) bool {
	return slices.ContainsFunc(c.faults, func(f Fault) bool {
		return f.Path == path || strings.HasPrefix(path, f.Path+".")
	})
}

func (c *checker) require(ok bool, path, value, format string, args ...any) {
	if !ok && !c.has(path) {
		c.faults = append(c.faults, Fault{Path: path, Value: value, Message: fmt.Sprintf(format, args...)})
	}
}

// between checks a number for which 0 means its default.
func (c *checker) between(path string, v, low, high int32) {
	c.require(v == 0 || v >= low && v <= high, path, strconv.Itoa(int(v)), "must be between %d and %d", low, high)
}

var (
	dnsLabel   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	dnsName    = regexp.MustCompile(`^([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.?$`)
	labelKey   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	secretName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
	cloudName  = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,80}$`)
)

const (
	maxLabels = 32
	// maxUserData is Compute Engine's limit for one metadata value, in bytes.
	maxUserData = 262144
)

func (c *checker) name(name string) {
	c.require(dnsLabel.MatchString(name), "metadata.name", strconv.Quote(name), "must be at most 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit")
}

func (c *checker) labels(labels map[string]string) {
	c.require(len(labels) <= maxLabels, "metadata.labels", strconv.Itoa(len(labels)), "must be at most %d", maxLabels)
	keys := make([]string, 0, len(labels))
	for k := range labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		path := "metadata.labels." + printable(k)
		c.require(labelKey.MatchString(k), path, "", "must have a key of at most 63 letters, digits, '-', '_' and '.'")
		c.require(labelValue.MatchString(labels[k]), path, show(labels[k]), "must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit")
	}
}

func (c *checker) mode(m Mode) {
	c.require(m != "", "spec.mode", "", "must be set: Managed or External")
	c.require(m == "" || m == Managed || m == External, "spec.mode", strconv.Quote(string(m)), "must be Managed or External")
}

func (c *checker) spec(s Spec) {
	c.require(s.Provider == "" || dnsLabel.MatchString(s.Provider), "spec.provider", strconv.Quote(s.Provider), "must be a name from the providers file: lower-case letters, digits and hyphens")
	c.placement(s.Placement)
	if s.CloudInit != nil {
		c.require(len(s.CloudInit.Inline) <= maxUserData, "spec.cloudInit.inline", "", "must be at most %d bytes", maxUserData)
		c.secretRef("spec.cloudInit.secretRef", s.CloudInit.SecretRef)
	}
	c.endpoint(s.Endpoint)
	if s.HealthCheck != nil {
		c.healthCheck(*s.HealthCheck)
	}
	if s.MaxLeases != nil {
		c.require(*s.MaxLeases >= 0 && *s.MaxLeases <= 1000, "spec.maxLeases", strconv.Itoa(int(*s.MaxLeases)), "must be between 0 and 1000")
	}
	if s.Lifecycle != nil {
		c.lifecycle(*s.Lifecycle)
	}
}

func (c *checker) placement(p *Placement) {
	if p == nil {
		return
	}
	for _, f := range []struct{ path, value string }{{"region", p.Region}, {"zone", p.Zone}, {"machineType", p.MachineType}} {
		c.require(f.value == "" || cloudName.MatchString(f.value), "spec.placement."+f.path, strconv.Quote(f.value), "must be a name of the cloud: lower-case letters, digits and hyphens")
	}
	for i, z := range p.Zones {
		c.require(cloudName.MatchString(z), fmt.Sprintf("spec.placement.zones[%d]", i), strconv.Quote(z), "must be a name of the cloud: lower-case letters, digits and hyphens")
	}
	if p.Region == "" {
		return
	}
	in := func(zone string) bool { return zone == "" || strings.HasPrefix(zone, p.Region+"-") }
	c.require(in(p.Zone), "spec.placement.zone", strconv.Quote(p.Zone), "must be a zone of region %s", p.Region)
	for i, z := range p.Zones {
		c.require(in(z), fmt.Sprintf("spec.placement.zones[%d]", i), strconv.Quote(z), "must be a zone of region %s", p.Region)
	}
}

func (c *checker) secretRef(path string, r *SecretRef) {
	if r == nil {
		return
	}
	c.require(secretName.MatchString(r.Name), path+".name", strconv.Quote(r.Name), "must be a secret's name: 1 to 255 letters, digits, '_' and '-'")
	c.require(len(r.Key) <= 255, path+".key", "", "must be at most 255 bytes")
}

func (c *checker) endpoint(e Endpoint) {
	c.require(e.Host == "" || validHost(e.Host), "spec.endpoint.host", show(e.Host), "must be a host name, an IPv4 or an IPv6 address, without scheme, port and brackets")
	c.require(e.Port >= 0 && e.Port <= 65535, "spec.endpoint.port", strconv.Itoa(int(e.Port)), "must be between 1 and 65535")
	c.secretRef("spec.endpoint.credentialsSecretRef", e.CredentialsSecretRef)
}

func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	// What looks like an IPv4 address but is none is a slip, not a name.
	return len(host) <= 253 && dnsName.MatchString(host) && strings.Trim(host, "0123456789.") != ""
}

func (c *checker) healthCheck(h HealthCheck) {
	const path = "spec.healthCheck."
	c.require(h.URL == "" || validTarget(h.URL), path+"url", "", "must be an http or https URL with a host and without credentials")
	c.between(path+"expectedStatus", h.ExpectedStatus, 100, 599)
	c.require(len(h.BodyContains) <= 1024, path+"bodyContains", "", "must be at most 1024 bytes")
	c.between(path+"intervalSeconds", h.IntervalSeconds, 60, 3600)
	c.between(path+"timeoutSeconds", h.TimeoutSeconds, 1, 60)
	c.between(path+"healthyThreshold", h.HealthyThreshold, 1, 100)
	c.between(path+"unhealthyThreshold", h.UnhealthyThreshold, 1, 100)
	full := Spec{HealthCheck: &h}.HealthCheckOrDefault()
	c.require(full.TimeoutSeconds < full.IntervalSeconds, path+"timeoutSeconds", strconv.Itoa(int(full.TimeoutSeconds)), "must be below intervalSeconds (%d)", full.IntervalSeconds)
	c.require(slices.Contains([]string{"", OnBlockedUnhealthy, OnBlockedIgnore}, h.OnBlocked), path+"onBlocked", show(h.OnBlocked), "must be Unhealthy or Ignore")
	c.require(slices.Contains([]string{"", "header", "body"}, h.ExitAddressFrom), path+"exitAddressFrom", show(h.ExitAddressFrom), "must be header or body")
	c.require(h.ExitAddressHeader == "" || headerName.MatchString(h.ExitAddressHeader), path+"exitAddressHeader", show(h.ExitAddressHeader), "must be a header's name")
}

func validTarget(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Opaque == "" && len(s) <= 2048
}

func (c *checker) lifecycle(l Lifecycle) {
	for _, f := range []struct {
		path      string
		value     *Duration
		low, high time.Duration
		zero      bool // 0 means never
	}{
		{"provisionTimeout", l.ProvisionTimeout, time.Minute, 24 * time.Hour, false},
		{"replaceUnhealthyAfter", l.ReplaceUnhealthyAfter, time.Minute, 30 * 24 * time.Hour, true},
		{"maxAge", l.MaxAge, 10 * time.Minute, 365 * 24 * time.Hour, true},
		{"drainTimeout", l.DrainTimeout, 0, 24 * time.Hour, true},
	} {
		if f.value == nil {
			continue
		}
		d := time.Duration(*f.value)
		must := fmt.Sprintf("must be between %s and %s", f.low, f.high)
		if f.zero && f.low > 0 {
			must += ", or 0 for never"
		}
		c.require(d >= f.low && d <= f.high || f.zero && d == 0, "spec.lifecycle."+f.path, d.String(), "%s", must)
	}
}
