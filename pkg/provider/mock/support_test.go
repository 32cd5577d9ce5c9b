package mock

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClock() *testclock.Clock { return testclock.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) }

// opened is a cloud without listeners and its clock.
func opened(t *testing.T, s Settings) (*Cloud, *testclock.Clock) {
	t.Helper()
	clock := newClock()
	c, err := Open(s, WithClock(clock.Now), WithoutListener())
	require.NoError(t, err)
	return c, clock
}

// listening is a cloud whose instances take ports, and its clock.
func listening(t *testing.T, s Settings) (*Cloud, *testclock.Clock) {
	t.Helper()
	clock := newClock()
	c, err := Open(s, WithClock(clock.Now))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c, clock
}

// request asks for the first instance of the Proxy with this uid.
func request(uid string, port int32) provider.CreateRequest {
	return provider.CreateRequest{
		Name: provider.InstanceName(uid, 1), Owner: "ours", UID: uid, Incarnation: 1, SpecHash: "hash", ProxyName: uid,
		Region: "us-east1", Zone: "us-east1-b", MachineType: "e2-micro", Port: port,
	}
}

func create(t *testing.T, c *Cloud, req provider.CreateRequest) provider.Instance {
	t.Helper()
	got, err := c.Create(t.Context(), req)
	require.NoError(t, err)
	return got
}

func get(t *testing.T, c *Cloud, ref provider.Ref) provider.Instance {
	t.Helper()
	got, err := c.Get(t.Context(), ref)
	require.NoError(t, err)
	return got
}

func list(t *testing.T, c *Cloud) []string {
	t.Helper()
	got, err := c.ListByTag(t.Context(), "ours")
	require.NoError(t, err)
	return names(got)
}

func names(instances []provider.Instance) []string {
	out := make([]string, len(instances))
	for i := range instances {
		out[i] = instances[i].Name
	}
	return out
}

// reserve returns a port that this process keeps for as long as the test runs: no other program can
// take it between two instances of the test.
func reserve(t *testing.T) int32 {
	t.Helper()
	socket, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	port := int32(socket.Addr().(*net.TCPAddr).Port)
	ports.Lock()
	l := serve(port, socket)
	l.holders[t.Name()] = 1
	ports.open[port] = l
	ports.Unlock()
	t.Cleanup(func() { l.release(t.Name()) })
	return port
}

// freePort returns a port that nothing listens on for the moment.
func freePort(t *testing.T) int32 {
	t.Helper()
	socket, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	defer func() { require.NoError(t, socket.Close()) }()
	return int32(socket.Addr().(*net.TCPAddr).Port)
}

// taken reports whether something listens on the port.
func taken(port int32) bool {
	socket, err := listen(port)
	if err != nil {
		return true
	}
	_ = socket.Close()
	return false
}
