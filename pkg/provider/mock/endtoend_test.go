package mock

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/registry"
)

// TestCrawlThroughAMockVM goes from a providers file to a page that was fetched through the VM: real
// sockets, real TLS, and nothing left of either. It is not parallel, so that every goroutine is its.
func TestCrawlThroughAMockVM(t *testing.T) {
	before := goleak.IgnoreCurrent()
	port := freePort(t)
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Proxy-Authorization"), "the origin sees no credentials of the proxy")
		fmt.Fprintf(w, "hello from %s", r.URL.Path)
	}))
	configs, err := provider.ReadConfigs([]byte(`
- name: demo
  type: mock
  mock: {provisionDelay: 90s, stopDelay: 5s, purgeDelay: 5s, basicAuth: "crawler:p@:/?#% é"}
`))
	require.NoError(t, err)
	clock := newClock()
	built, err := registry.Build(t.Context(), configs, map[string]provider.Constructor{
		"mock": func(ctx context.Context, c provider.Config) (provider.Provider, error) {
			p, err := New(ctx, c)
			if err == nil {
				WithClock(clock.Now)(p.(*Cloud))
			}
			return p, err
		},
	})
	require.NoError(t, err)
	cloud := built["demo"]

	req := request("uid-1", port)
	created, err := cloud.Create(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, provider.StateProvisioning, created.State)
	assert.Empty(t, created.Address)
	clock.Advance(89 * time.Second)
	got, err := cloud.Get(t.Context(), created.Ref())
	require.NoError(t, err)
	assert.Equal(t, provider.StateProvisioning, got.State)
	assert.False(t, taken(port), "a VM that boots does not listen yet")

	clock.Advance(time.Second)
	got, err = cloud.Get(t.Context(), created.Ref())
	require.NoError(t, err)
	assert.Equal(t, provider.StateRunning, got.State)
	assert.Equal(t, "127.0.0.1", got.Address)

	client := proxyClient(origin, port, url.UserPassword("crawler", "p@:/?#% é"))
	resp, err := client.Get(origin.URL + "/page")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "hello from /page", string(body))
	assert.NotNil(t, resp.TLS)

	require.NoError(t, cloud.Delete(t.Context(), got.Ref()))
	assert.False(t, taken(port), "the port is free again as soon as the VM stops")
	_, err = client.Get(origin.URL + "/page")
	require.Error(t, err, "no connection outlives the VM")
	clock.Advance(10 * time.Second)
	_, err = cloud.Get(t.Context(), got.Ref())
	require.ErrorIs(t, err, provider.ErrNotFound)

	client.CloseIdleConnections()
	origin.Close()
	goleak.VerifyNone(t, before)
}

// proxyClient fetches from a TLS origin through a proxy on this machine.
func proxyClient(origin *httptest.Server, port int32, user *url.Userinfo) *http.Client {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", host, port), User: user})}
	if origin.TLS != nil {
		transport.TLSClientConfig = origin.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AddCert(origin.Certificate())
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}
