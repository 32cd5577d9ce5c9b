package gce

import (
	"encoding/json"
	"errors"
	"io"
)

// maxBody is more than the metadata limits leave room for.
const maxBody = 1 << 20

// resource is the instance resource as far as the server knows it, in requests and in answers. The
// members after the blank line are set by the API alone.
type resource struct {
	Name                   string             `json:"name"`
	Description            string             `json:"description,omitempty"`
	MachineType            string             `json:"machineType"`
	Labels                 map[string]string  `json:"labels,omitempty"`
	Tags                   *tags              `json:"tags,omitempty"`
	Metadata               *metadata          `json:"metadata,omitempty"`
	Disks                  []disk             `json:"disks"`
	NetworkInterfaces      []networkInterface `json:"networkInterfaces"`
	Scheduling             *scheduling        `json:"scheduling,omitempty"`
	ServiceAccounts        []serviceAccount   `json:"serviceAccounts,omitempty"`
	ShieldedInstanceConfig *shielded          `json:"shieldedInstanceConfig,omitempty"`

	Kind              string `json:"kind,omitempty"`
	ID                string `json:"id,omitempty"`
	CreationTimestamp string `json:"creationTimestamp,omitempty"`
	Status            string `json:"status,omitempty"`
	Zone              string `json:"zone,omitempty"`
	SelfLink          string `json:"selfLink,omitempty"`
	LabelFingerprint  string `json:"labelFingerprint,omitempty"`
	Fingerprint       string `json:"fingerprint,omitempty"`
}

type tags struct {
	Items       []string `json:"items,omitempty"`
	Fingerprint string   `json:"fingerprint,omitempty"`
}

type metadata struct {
	Items       []item `json:"items,omitempty"`
	Kind        string `json:"kind,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

type item struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type disk struct {
	Boot             bool        `json:"boot,omitempty"`
	AutoDelete       bool        `json:"autoDelete,omitempty"`
	InitializeParams *diskParams `json:"initializeParams,omitempty"`

	Source     string `json:"source,omitempty"`
	DeviceName string `json:"deviceName,omitempty"`
	DiskSizeGB int64  `json:"diskSizeGb,omitempty,string"`
	Kind       string `json:"kind,omitempty"`
}

type diskParams struct {
	SourceImage string            `json:"sourceImage,omitempty"`
	DiskSizeGB  int64             `json:"diskSizeGb,omitempty,string"`
	DiskType    string            `json:"diskType,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

type networkInterface struct {
	Network           string         `json:"network,omitempty"`
	Subnetwork        string         `json:"subnetwork,omitempty"`
	StackType         string         `json:"stackType,omitempty"`
	AccessConfigs     []accessConfig `json:"accessConfigs,omitempty"`
	IPv6AccessConfigs []accessConfig `json:"ipv6AccessConfigs,omitempty"`

	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	NetworkIP string `json:"networkIP,omitempty"`
}

type accessConfig struct {
	Name        string `json:"name,omitempty"`
	Type        string `json:"type,omitempty"`
	NetworkTier string `json:"networkTier,omitempty"`

	Kind         string `json:"kind,omitempty"`
	NatIP        string `json:"natIP,omitempty"`
	ExternalIPv6 string `json:"externalIpv6,omitempty"`
}

type scheduling struct {
	ProvisioningModel         string   `json:"provisioningModel,omitempty"`
	AutomaticRestart          *bool    `json:"automaticRestart,omitempty"`
	OnHostMaintenance         string   `json:"onHostMaintenance,omitempty"`
	Preemptible               bool     `json:"preemptible,omitempty"`
	InstanceTerminationAction string   `json:"instanceTerminationAction,omitempty"`
	MaxRunDuration            *seconds `json:"maxRunDuration,omitempty"`
}

type seconds struct {
	Seconds int64 `json:"seconds,string"`
}

type serviceAccount struct {
	Email  string   `json:"email"`
	Scopes []string `json:"scopes"`
}

type shielded struct {
	EnableSecureBoot          bool `json:"enableSecureBoot"`
	EnableVtpm                bool `json:"enableVtpm"`
	EnableIntegrityMonitoring bool `json:"enableIntegrityMonitoring"`
}

// decode reads exactly one JSON object of known members.
func decode(r io.Reader, into any) error {
	d := json.NewDecoder(io.LimitReader(r, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows after the object")
	}
	return nil
}
