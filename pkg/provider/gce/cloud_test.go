package gce

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

const (
	project = "crawl-project"
	zone    = "us-east1-b"
	owner   = "crawl-project-default"
)

func newClock() *testclock.Clock {
	return testclock.At(time.Date(2026, 11, 5, 12, 0, 10, 0, time.UTC))
}

// cloud is an emulated project with a provider for it, on one clock.
type cloud struct {
	*emulator.Server
	*testclock.Clock
	provider *Provider
}

func startCloud(t *testing.T, opts emulator.Options, block Settings) *cloud {
	t.Helper()
	c := &cloud{Clock: newClock()}
	opts.Now = c.Now
	c.Server = emulator.New(opts)
	require.NoError(t, c.Server.Start("127.0.0.1:0"))
	t.Cleanup(func() { _ = c.Server.Close() })
	c.provider = c.open(t, block)
	return c
}

// open returns one more provider for the same project.
func (c *cloud) open(t *testing.T, block Settings) *Provider {
	t.Helper()
	block.Endpoint = c.URL()
	if block.Project == "" {
		block.Project = project
	}
	p, err := Open(block, c.Now)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// count returns how often a method was called.
func (c *cloud) count(m emulator.Method) int {
	n := 0
	for _, call := range c.Calls() {
		if call.Method == m {
			n++
		}
	}
	return n
}

func request(name string) provider.CreateRequest {
	return provider.CreateRequest{
		Name: name, Owner: owner, UID: "uid-of-" + name, Incarnation: 1, SpecHash: "abc123", ProxyName: "us-east1-a",
		Region: "us-east1", Zone: zone, MachineType: "e2-micro", UserData: "#cloud-config\n", Port: 3128,
	}
}

// boot is longer than the emulator's instances take to be running, or to go.
const boot = time.Minute
