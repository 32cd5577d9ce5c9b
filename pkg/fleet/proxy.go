// Package fleet holds the documents of the plane: what people write, what the plane writes, and the rules between them.
package fleet

import "time"

// APIVersion and Kind of a Proxy manifest.
const (
	APIVersion = "crawl.example.com/v1alpha1"
	Kind       = "Proxy"
)

// Proxy is the document proxies/{Name}. People write Labels, Spec, DeleteTime and RotateTime; the
// plane writes Status. Each writer writes its own fields and no others.
type Proxy struct {
	Name   string            // document id: RFC 1123 label of at most 63 characters
	Labels map[string]string // what leases select by
	Spec   Spec
	Status Status

	// DeleteTime is when somebody asked for the proxy to go; zero while nobody has. It is never unset.
	DeleteTime time.Time
	// RotateTime is when somebody asked for a fresh instance; instances asked for earlier are replaced.
	RotateTime time.Time

	// Broken says what of the stored document could not be decoded. Such fields are zero above, the
	// rest of the document is as stored. It is never written.
	Broken Faults

	// CreateTime and UpdateTime are the store's own, in microseconds; UpdateTime is the version that
	// conditional writes name. Zero for a document that is not stored yet.
	CreateTime time.Time
	UpdateTime time.Time
}

// Mode says who runs the proxy.
type Mode string

// The modes.
const (
	Managed  Mode = "Managed"  // the plane creates, replaces and deletes its VM
	External Mode = "External" // somebody else runs it; the plane probes and leases it
)

// Spec is what people ask for. Field names, defaults and ranges are those of the manifest.
type Spec struct {
	Mode        Mode         `json:"mode"`
	Provider    string       `json:"provider,omitempty"`
	Placement   *Placement   `json:"placement,omitempty"`
	CloudInit   *CloudInit   `json:"cloudInit,omitempty"`
	Endpoint    Endpoint     `json:"endpoint,omitzero"`
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
	MaxLeases   *int32       `json:"maxLeases,omitempty"` // nil means 5; 0 means never leased; 0..1000
	Paused      bool         `json:"paused,omitempty"`
	Lifecycle   *Lifecycle   `json:"lifecycle,omitempty"`
}

// Placement says where and on what a Managed proxy runs.
type Placement struct {
	Region      string   `json:"region,omitempty"`
	Zone        string   `json:"zone,omitempty"`
	Zones       []string `json:"zones,omitempty"` // tried in order when a zone has no capacity
	MachineType string   `json:"machineType,omitempty"`
	Spot        bool     `json:"spot,omitempty"`
}

// CloudInit is the VM's first-boot configuration: exactly one of the two.
type CloudInit struct {
	Inline    string     `json:"inline,omitempty"`
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}

// SecretRef names a secret: its latest version's payload or, with Key, that member of the JSON
// object which the payload then is.
type SecretRef struct {
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`
}

// Endpoint is where the proxy listens and what it asks for.
type Endpoint struct {
	Host                 string     `json:"host,omitempty"` // External: name, IPv4 or IPv6 literal
	Port                 int32      `json:"port,omitempty"` // 1..65535; 0 means 3128
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`
}

// HealthCheck is what a probe asks for through the proxy, and what its outcomes count for.
// Zero fields mean their defaults: see HealthCheckOrDefault.
type HealthCheck struct {
	URL                string `json:"url,omitempty"`
	ExpectedStatus     int32  `json:"expectedStatus,omitempty"` // 100..599; 0: 204 with the default URL, else any 2xx
	BodyContains       string `json:"bodyContains,omitempty"`
	IntervalSeconds    int32  `json:"intervalSeconds,omitempty"`    // 60..3600, default 60
	TimeoutSeconds     int32  `json:"timeoutSeconds,omitempty"`     // 1..60 and below the interval, default 10
	HealthyThreshold   int32  `json:"healthyThreshold,omitempty"`   // 1..100, default 1
	UnhealthyThreshold int32  `json:"unhealthyThreshold,omitempty"` // 1..100, default 3
	InsecureSkipVerify bool   `json:"insecureSkipVerify,omitempty"`
	// OnBlocked says what a 403 or 429 of the target counts as: Unhealthy (default) or Ignore.
	OnBlocked string `json:"onBlocked,omitempty"`
	// ExitAddressFrom says where the target tells the caller's address: "", "header" or "body".
	ExitAddressFrom string `json:"exitAddressFrom,omitempty"`
	// ExitAddressHeader is the header that tells it, default X-Client-Address.
	ExitAddressHeader string `json:"exitAddressHeader,omitempty"`
}

// Lifecycle bounds how long things may take. Nil fields mean the defaults: see LifecycleOrDefault.
type Lifecycle struct {
	ProvisionTimeout      *Duration `json:"provisionTimeout,omitempty"`      // default 10m
	ReplaceUnhealthyAfter *Duration `json:"replaceUnhealthyAfter,omitempty"` // default 10m; 0 = never
	MaxAge                *Duration `json:"maxAge,omitempty"`                // default 0 = never
	DrainTimeout          *Duration `json:"drainTimeout,omitempty"`          // default 10m
}
