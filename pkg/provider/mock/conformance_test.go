package mock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/providertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Harness{Open: func(t *testing.T) providertest.Cloud {
		c, clock := listening(t, Settings{ProvisionDelay: 3 * time.Second, StopDelay: 2 * time.Second, PurgeDelay: 2 * time.Second})
		return providertest.Cloud{
			Provider: c,
			Template: provider.CreateRequest{Region: "us-east1", Zone: "us-east1-b", MachineType: "e2-micro", Port: reserve(t)},
			Step:     func() { clock.Advance(time.Second) },
			Many:     3*pageSize + 1,
			Faults: providertest.Faults{
				RefuseCreate: func(_ *testing.T, class error) { c.InjectCreateFailures(1, class) },
				LoseReply:    func(*testing.T) { c.InjectLostReplies(VerbCreate, 1) },
				FailLaunch: func(*testing.T) {
					c.InjectLaunchFailures(1, provider.Error{Class: provider.ErrQuotaExceeded, Reason: reasonQuota})
				},
				StockOut: func(_ *testing.T, zone string) { c.SetStockOut(zone) },
				Stop:     func(t *testing.T, ref provider.Ref) { require.True(t, c.Preempt(ref.Name)) },
				Vanish:   func(t *testing.T, ref provider.Ref) { require.True(t, c.Vanish(ref.Name)) },
				Hide: func(_ *testing.T, zone string) func() {
					c.HideZones(zone)
					return func() { c.HideZones() }
				},
				Outage: func(*testing.T) func() { return c.Outage() },
				Stall:  func(*testing.T) func() { return c.Stall() },
			},
		}
	}})
}

// TestConformanceLeavesNothing holds the suite to its word: it cleans up in clouds that cost money.
func TestConformanceLeavesNothing(t *testing.T) {
	t.Parallel()
	c, clock := opened(t, Settings{ProvisionDelay: time.Second, StopDelay: time.Second, PurgeDelay: time.Second})
	t.Run("suite", func(t *testing.T) {
		providertest.Run(t, providertest.Harness{Open: func(*testing.T) providertest.Cloud {
			return providertest.Cloud{
				Provider: c,
				Template: provider.CreateRequest{Zone: "us-east1-b", Port: 3128},
				Step:     func() { clock.Advance(time.Second) },
				Many:     3,
			}
		}})
	})
	assert.Empty(t, c.Instances())
}
