package fleet

import "time"

// DefaultPort is where a proxy listens unless the spec says otherwise.
const DefaultPort = 3128

// DefaultMaxLeases is how many leases a Proxy takes when the spec says nothing.
const DefaultMaxLeases = 5

// DefaultHealthURL is what a probe asks for unless the spec says otherwise; it answers 204.
const DefaultHealthURL = "https://www.gstatic.com/generate_204"

// The defaults of OnBlocked and ExitAddressHeader, and the other value of OnBlocked.
const (
	OnBlockedUnhealthy       = "Unhealthy"
	OnBlockedIgnore          = "Ignore"
	DefaultExitAddressHeader = "X-Client-Address"
)

// EffectivePort returns the port that the proxy listens on.
func (p Proxy) EffectivePort() int32 {
	if p.Spec.Endpoint.Port == 0 {
		return DefaultPort
	}
	return p.Spec.Endpoint.Port
}

// EffectiveHost returns where the proxy is reached: the spec's host for External, the observed
// address for Managed. It is empty while there is none.
func (p Proxy) EffectiveHost() string {
	if p.Spec.Mode == External {
		return p.Spec.Endpoint.Host
	}
	if p.Status.Endpoint == nil {
		return ""
	}
	return p.Status.Endpoint.Host
}

// HealthCheckOrDefault returns the health check with every default filled in. ExpectedStatus stays 0,
// meaning any 2xx, unless the spec or the default URL says which.
func (s Spec) HealthCheckOrDefault() HealthCheck {
	var h HealthCheck
	if s.HealthCheck != nil {
		h = *s.HealthCheck
	}
	if h.URL == "" {
		h.URL = DefaultHealthURL
	}
	if h.ExpectedStatus == 0 && h.URL == DefaultHealthURL {
		h.ExpectedStatus = 204
	}
	fill(&h.IntervalSeconds, 60)
	fill(&h.TimeoutSeconds, 10)
	fill(&h.HealthyThreshold, 1)
	fill(&h.UnhealthyThreshold, 3)
	fill(&h.OnBlocked, OnBlockedUnhealthy)
	fill(&h.ExitAddressHeader, DefaultExitAddressHeader)
	return h
}

// MaxLeasesOrDefault returns how many leases the Proxy takes: an explicit 0 stays 0.
func (s Spec) MaxLeasesOrDefault() int32 {
	if s.MaxLeases == nil {
		return DefaultMaxLeases
	}
	return *s.MaxLeases
}

// LifecycleOrDefault returns the lifecycle with every field set.
func (s Spec) LifecycleOrDefault() Lifecycle {
	var l Lifecycle
	if s.Lifecycle != nil {
		l = *s.Lifecycle
	}
	for _, f := range []struct {
		field *(*Duration)
		value time.Duration
	}{
		{&l.ProvisionTimeout, 10 * time.Minute}, {&l.ReplaceUnhealthyAfter, 10 * time.Minute},
		{&l.MaxAge, 0}, {&l.DrainTimeout, 10 * time.Minute},
	} {
		if *f.field == nil {
			d := Duration(f.value)
			*f.field = &d
		}
	}
	return l
}

// ZonesInOrder returns the zones to try, the preferred one first, each once; empty when the spec
// names none.
func (s Spec) ZonesInOrder() []string {
	if s.Placement == nil {
		return nil
	}
	var out []string
	seen := map[string]bool{"": true}
	for _, z := range append([]string{s.Placement.Zone}, s.Placement.Zones...) {
		if !seen[z] {
			seen[z] = true
			out = append(out, z)
		}
	}
	return out
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
