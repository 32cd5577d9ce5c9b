package gce

import (
	"flag"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/providertest"
)

// With -gce.project the suite runs in a real project, with the credentials of the environment. It makes
// about 25 small VMs, a few at a time, and removes each; see README.md.
var (
	realProject    = flag.String("gce.project", "", "run the conformance suite in this project of Compute Engine, which costs a few cents")
	realZone       = flag.String("gce.zone", "us-central1-a", "zone for -gce.project")
	realNetwork    = flag.String("gce.network", "", "network for -gce.project; empty: default")
	realSubnetwork = flag.String("gce.subnetwork", "", "subnetwork for -gce.project")
	realMachine    = flag.String("gce.machine-type", "e2-micro", "machine type for -gce.project")
	realAddress    = flag.String("gce.address", "", "address for -gce.project: external, internal or ipv6")
)

func TestConformance(t *testing.T) {
	t.Parallel()
	if *realProject != "" {
		providertest.Run(t, providertest.Harness{Open: openReal})
		return
	}
	providertest.Run(t, providertest.Harness{Open: openEmulated})
}

func openReal(t *testing.T) providertest.Cloud {
	open := func(t *testing.T) provider.Provider {
		p, err := Open(Settings{Project: *realProject, Network: *realNetwork, Subnetwork: *realSubnetwork, Address: *realAddress}, time.Now)
		require.NoError(t, err)
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	return providertest.Cloud{
		Provider: open(t),
		Peer:     open,
		Template: provider.CreateRequest{Zone: *realZone, Region: regionOf(*realZone), MachineType: *realMachine, Port: 3128},
		Step:     func() { time.Sleep(3 * time.Second) }, // the real clock cannot be moved
	}
}

func openEmulated(t *testing.T) providertest.Cloud {
	c := startCloud(t, emulator.Options{PageSize: 3, Provision: time.Second, Boot: 3 * time.Second, Stop: 2 * time.Second}, Settings{})
	return providertest.Cloud{
		Provider: c.provider,
		Peer:     func(t *testing.T) provider.Provider { return c.open(t, Settings{}) },
		Template: provider.CreateRequest{Zone: zone, Region: "us-east1", MachineType: "e2-micro", UserData: "#cloud-config\n", Port: 3128},
		Step:     func() { c.Advance(time.Second) },
		Many:     10,
		Faults: providertest.Faults{
			RefuseCreate: func(_ *testing.T, class error) { c.Inject(refusals[class]) },
			LoseReply: func(*testing.T) {
				c.Inject(emulator.Fault{Method: emulator.Insert, Times: 1, LoseAnswer: true})
			},
			FailLaunch: func(*testing.T) {
				c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: "QUOTA_EXCEEDED"}})
			},
			StockOut: func(_ *testing.T, zone string) {
				c.Inject(emulator.Fault{Zone: zone, Operation: &emulator.OperationError{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}})
			},
			Stop: func(t *testing.T, ref provider.Ref) { require.True(t, c.End(project, ref.Zone, ref.Name)) },
			Vanish: func(t *testing.T, ref provider.Ref) {
				require.True(t, c.Vanish(project, ref.Zone, ref.Name))
			},
			Hide: func(_ *testing.T, zone string) func() {
				c.SetUnreachable(zone, true)
				return c.Heal
			},
			Outage: func(*testing.T) func() {
				c.Inject(emulator.Fault{Status: http.StatusServiceUnavailable, Reason: "backendError"})
				return c.Heal
			},
			Stall: func(*testing.T) func() {
				until := make(chan struct{})
				c.Inject(emulator.Fault{Until: until})
				return func() {
					c.Heal()
					close(until)
				}
			},
		},
	}
}

// TestConformanceLeavesNothing holds the suite to its word: it cleans up in projects that cost money.
func TestConformanceLeavesNothing(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{Provision: time.Second, Boot: time.Second, Stop: time.Second}, Settings{})
	t.Run("suite", func(t *testing.T) {
		providertest.Run(t, providertest.Harness{Open: func(*testing.T) providertest.Cloud {
			return providertest.Cloud{
				Provider: c.provider,
				Template: provider.CreateRequest{Zone: zone, MachineType: "e2-micro", Port: 3128},
				Step:     func() { c.Advance(time.Second) },
				Many:     3,
			}
		}})
	})
	assert.Empty(t, c.Names())
}

// refusals are what the API says at once, by what we make of it.
var refusals = map[error]emulator.Fault{
	provider.ErrQuotaExceeded: {Method: emulator.Insert, Times: 1, Status: http.StatusForbidden, Reason: "quotaExceeded", Message: "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-east1."},
	provider.ErrTransient:     {Method: emulator.Insert, Times: 1, Status: http.StatusServiceUnavailable, Reason: "backendError"},
	provider.ErrPermanent:     {Method: emulator.Insert, Times: 1, Status: http.StatusForbidden, Reason: "forbidden", Message: "Required 'compute.instances.create' permission"},
}
