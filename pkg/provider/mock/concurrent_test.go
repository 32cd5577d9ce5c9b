package mock

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneCloudServesManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }))
	t.Cleanup(origin.Close)
	c, clock := listening(t, Settings{ProvisionDelay: 3 * time.Second, StopDelay: time.Second, PurgeDelay: time.Second})
	port := reserve(t)
	client := proxyClient(origin, port, nil)
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for round := range 20 {
				req := request(fmt.Sprintf("uid-%d", (caller+round)%5), port)
				_, err := c.Create(t.Context(), req)
				assert.NoError(t, err)
				clock.Advance(time.Second)
				_, err = c.ListByTag(t.Context(), "ours")
				assert.NoError(t, err)
				if resp, err := client.Get(origin.URL); err == nil { // or the VM has just gone
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if round%3 == 0 {
					assert.NoError(t, c.Delete(t.Context(), req.Ref()))
				}
				if round%7 == 0 {
					c.Preempt(req.Name)
				}
				seen := map[string]bool{}
				for _, i := range c.Instances() {
					assert.False(t, seen[i.Name], "%s is there twice", i.Name)
					seen[i.Name] = true
				}
			}
		})
	}
	wg.Wait()
}

func TestTheEndOfAVMCutsAnUpgradedConnection(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, conn)
	}))
	t.Cleanup(origin.Close)
	c, _ := listening(t, Settings{})
	req := request("a", freePort(t))
	create(t, c, req)
	conn := dial(t, req.Port)
	resp, r := ask(t, conn, "GET "+origin.URL+"/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err := io.WriteString(conn, "hello")
	require.NoError(t, err)
	hello := make([]byte, 5)
	_, err = io.ReadFull(r, hello)
	require.NoError(t, err)
	require.NoError(t, c.Delete(t.Context(), req.Ref()))
	_, err = io.ReadAll(r)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
	assert.False(t, taken(req.Port))
}
