package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/emulator/proc"
)

const oneManaged = `
apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata: {name: only, labels: {pool: news}}
spec:
  mode: Managed
  provider: mock
  endpoint: {port: PORT, credentialsSecretRef: {name: proxy-auth, key: basic}}
  healthCheck: {url: "${ORIGIN_URL}/generate_204", expectedStatus: 204}
`

// proxyctl builds the operators' tool and returns a function that runs it against the plane.
func (l *local) proxyctl(t *testing.T) func(args ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "proxyctl")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../scripts/proxyctl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), l.exports()...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
}

// TestASpecComesAndGoes applies a proxy, crawls through it, and deletes it while it is leased: its VM
// stays until the lease is given back, and then nothing of it is left.
func TestASpecComesAndGoes(t *testing.T) {
	needEmulators(t)
	port, err := proc.FreePort()
	require.NoError(t, err)
	specs := filepath.Join(t.TempDir(), "one.yaml")
	require.NoError(t, os.WriteFile(specs, []byte(strings.Replace(oneManaged, "PORT", strconv.Itoa(port), 1)), 0o600))
	l := up(t, "--store", "firestore", "--specs", specs)
	ctl := l.proxyctl(t)
	lease := l.lease(t, `{}`)
	require.Contains(t, l.fetch(t, endpointURL(lease)), "hello from the origin")
	require.Contains(t, ctl("get", "proxies"), "Ready")

	require.Contains(t, ctl("delete", "only"), "will be deleted")
	require.Eventually(t, func() bool {
		_, view := call(t, http.MethodGet, l.LeaseURL+"/v1/proxies/only", "")
		return view["state"] == "Draining"
	}, 20*time.Second, 200*time.Millisecond)
	status, _ := call(t, http.MethodPost, l.LeaseURL+"/v1/leases", `{}`)
	require.Equal(t, http.StatusServiceUnavailable, status, "no new lease")
	require.Contains(t, l.fetch(t, endpointURL(lease)), "hello from the origin", "the live lease still works")
	status, renewed := call(t, http.MethodPost, l.LeaseURL+"/v1/leases/"+lease["id"].(string)+":renew", `{}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, true, renewed["draining"])
	status, _ = call(t, http.MethodPost, l.LeaseURL+"/v1/leases/"+lease["id"].(string)+":release", `{}`)
	require.Equal(t, http.StatusOK, status)

	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
		if err == nil {
			_ = conn.Close()
			return false
		}
		status, _ := call(t, http.MethodGet, l.LeaseURL+"/v1/proxies/only", "")
		return status == http.StatusNotFound
	}, 60*time.Second, 500*time.Millisecond, "VM and document are gone")
	require.NotContains(t, ctl("get", "proxies"), "only")
	require.Contains(t, ctl("apply", "-f", writeSecond(t, port)), "created", "and new ones can come")
	l.lease(t, `{}`)
	l.interrupt(t)
}

func writeSecond(t *testing.T, port int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "second.yaml")
	text := strings.NewReplacer("PORT", strconv.Itoa(port), "name: only", "name: second", `{url: "${ORIGIN_URL}/generate_204", expectedStatus: 204}`,
		`{url: "http://127.0.0.1:`+strconv.Itoa(answering(t))+`/", timeoutSeconds: 5}`).Replace(oneManaged)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// answering serves 200 to everybody and returns its port.
func answering(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close() })
	return ln.Addr().(*net.TCPAddr).Port
}

// TestTheComputeEngineSamplesWork runs the plane over the emulator of Compute Engine.
func TestTheComputeEngineSamplesWork(t *testing.T) {
	l := up(t, "--store", "memory", "--providers", "samples/gce-providers.yaml", "--specs", "samples/gce-proxies.yaml")
	var lease map[string]any
	require.Eventually(t, func() bool {
		var status int
		status, lease = call(t, http.MethodPost, l.LeaseURL+"/v1/leases", `{"labels":{"country":"us"}}`)
		return status == http.StatusCreated
	}, 40*time.Second, 250*time.Millisecond)
	require.Equal(t, "gce-us-a", lease["proxy"].(map[string]any)["name"])
	require.Contains(t, l.fetch(t, endpointURL(lease)), "hello from the origin")
	l.interrupt(t)
}
