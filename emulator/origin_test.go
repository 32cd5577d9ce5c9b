package main

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheOriginSpeaksTheProtocolOfAllCrawlers asks as a client that would rather have HTTP/2.
func TestTheOriginSpeaksTheProtocolOfAllCrawlers(t *testing.T) {
	o, err := startOrigin(filepath.Join(t.TempDir(), "ca.pem"))
	require.NoError(t, err)
	t.Cleanup(o.Close)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := (&http.Client{Transport: transport}).Get(o.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "HTTP/1.1", resp.Proto)
}
