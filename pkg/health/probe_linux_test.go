package health

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestAnAddressThatDropsConnectionsIsConnectTimeout(t *testing.T) {
	leaveNothing(t)
	host, port := deaf(t)
	got := newScene(t, nil).through(t, until, impatient, func(r *Request) { r.Host, r.Port = host, port })
	assert.Equal(t, fleet.OutcomeConnectTimeout, got.Outcome, got.Detail)
	assert.False(t, got.Certain)
}

// deaf is an address whose queue of connections is full, so that further ones are never answered.
func deaf(t *testing.T) (host string, port int32) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	port = int32(name.(*syscall.SockaddrInet4).Port)
	for range 2 { // the queue of length 0 takes one, at times two
		filler, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = syscall.Close(filler) })
		_ = syscall.Connect(filler, &syscall.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	}
	return "127.0.0.1", port
}
