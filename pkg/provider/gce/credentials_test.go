package gce

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// useAccount makes a service account the credentials of the environment; tokens come from tokens.
func useAccount(t *testing.T, tokens string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": project, "private_key_id": "k",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": "plane@crawl-project.iam.gserviceaccount.com", "client_id": "1", "token_uri": tokens,
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "account.json")
	require.NoError(t, os.WriteFile(file, account, 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}

func TestCallsCarryTheCredentialsOfTheEnvironment(t *testing.T) {
	var down atomic.Bool
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "the-token", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer tokens.Close()
	useAccount(t, tokens.URL)

	seen := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()

	p, err := Open(Settings{Project: project}, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	p.settings.Endpoint = api.URL // as a block may not say: with credentials and without TLS
	down.Store(true)
	_, err = p.Get(t.Context(), provider.Ref{Name: "proxy-a", Zone: zone})
	require.Error(t, err)
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "no token is no refusal: %v", err)

	down.Store(false)
	_, err = p.get(t.Context(), mustConnect(t, p), verbGet, "proxy-a", zone)
	assert.ErrorIs(t, err, provider.ErrNotFound)
	assert.Equal(t, "Bearer the-token", <-seen)
}

func mustConnect(t *testing.T, p *Provider) *client {
	t.Helper()
	c, err := p.connect(t.Context())
	require.NoError(t, err)
	return c
}
