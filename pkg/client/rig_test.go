package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"crawl.example.com/proxyfleet/pkg/client/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient returns a client of a plane that repeats lost calls at once.
func newClient(t *testing.T, p *clienttest.Plane) *Client {
	t.Helper()
	c, err := New(Config{URL: p.URL})
	require.NoError(t, err)
	c.pause = time.Millisecond
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}
