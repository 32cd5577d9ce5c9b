// Package guest is what runs inside the emulator's instances: a forward proxy on a port of this machine.
//
// All instances have the address 127.0.0.1, so those with the same port share one listener. The port is
// the one that the plane wrote into the instance's metadata.
package guest

import (
	"context"
	"strconv"

	"crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
)

// metadataPort is the metadata key under which the plane tells an instance its port.
const metadataPort = "proxyfleet-port"

// Guests are the proxies of a server's instances. Running and Gone are made for gce.Options.
type Guests struct {
	proxies *mock.Cloud // a cloud whose instances really proxy, and boot at once
}

// New returns the proxies of instances to come. Each asks for these credentials, user:password; where
// they are empty anybody may use it.
func New(credentials string) (*Guests, error) {
	proxies, err := mock.Open(mock.Settings{BasicAuth: credentials})
	if err != nil {
		return nil, err
	}
	return &Guests{proxies: proxies}, nil
}

// Running starts the proxy of an instance and returns its address. It returns none, as of a VM whose
// proxy did not come up, when the instance has no port or another program listens on it.
func (g *Guests) Running(vm gce.Booted) (address string) {
	port, err := strconv.ParseInt(vm.Metadata[metadataPort], 10, 32)
	if err != nil {
		return ""
	}
	ctx := context.Background() // nothing here waits
	made, err := g.proxies.Create(ctx, provider.CreateRequest{
		Name: vm.Name, Zone: vm.Zone, Port: int32(port),
		Owner: "guest", UID: vm.Name, Incarnation: 1, SpecHash: "none", ProxyName: "guest",
	})
	if err != nil {
		return ""
	}
	seen, err := g.proxies.Get(ctx, made.Ref())
	if err != nil || seen.Address == "" {
		g.Gone(vm)
		return ""
	}
	return seen.Address
}

// Gone ends the proxy of an instance.
func (g *Guests) Gone(vm gce.Booted) { g.proxies.Vanish(vm.Name) }

// Close ends all proxies.
func (g *Guests) Close() error { return g.proxies.Close() }
