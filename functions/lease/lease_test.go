package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// secrets is a vault in a map.
type secrets map[string]string

func (s secrets) Resolve(_ context.Context, name, _ string) (string, error) { return s[name], nil }

func open(t *testing.T, c app.Config, s secrets) (http.Handler, error) {
	t.Helper()
	c.ProjectID, c.Database, c.MetricsPort = "my-project", "(default)", -1
	return Open(t.Context(), app.New(c, memory.New(time.Now), s, app.NewLogger(&bytes.Buffer{}, "info")))
}

func get(t *testing.T, h http.Handler, path, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOnCloudRunItRefusesToServeUnknownCallers(t *testing.T) {
	t.Parallel()
	_, err := open(t, app.Config{OnCloudRun: true}, nil)
	require.ErrorContains(t, err, "AUTH: must be iam or apikeys")
	h, err := open(t, app.Config{OnCloudRun: true, Auth: app.AuthIAM}, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, get(t, h, "/v1/status", "").Code)
}

func TestABadListOfAPIKeysStopsTheStart(t *testing.T) {
	t.Parallel()
	_, err := open(t, app.Config{Auth: app.AuthAPIKeys, APIKeysSecret: "keys"}, secrets{"keys": "anna: hunter2"})
	require.ErrorContains(t, err, "line 1")
	require.NotContains(t, err.Error(), "hunter2")
	h, err := open(t, app.Config{Auth: app.AuthAPIKeys, APIKeysSecret: "keys"}, secrets{"keys": "anna: " + strings.Repeat("ab", 32)})
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, get(t, h, "/", "Bearer wrong").Code)
}

func TestTheConsoleIsAtTheRoot(t *testing.T) {
	t.Parallel()
	h, err := open(t, app.Config{}, nil)
	require.NoError(t, err)
	w := get(t, h, "/", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "my-project")
	w = get(t, h, "/v1/status", "")
	var status map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status))
	require.Contains(t, status, "states")
}
