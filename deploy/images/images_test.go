package images

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// build compiles the image's program as this test is compiled, so that nothing is compiled twice.
func build(t *testing.T, function string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), function)
	args := []string{"build", "-o", binary}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args = append(args, "-race")
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, "./"+function)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// start runs a program until the test ends it; its address is ready when it returns.
func start(t *testing.T, binary string, env ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	cmd = exec.CommandContext(t.Context(), binary)
	cmd.Env = append([]string{"PORT=" + strconv.Itoa(port), "METRICS_PORT=off"}, env...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 60*time.Second, 20*time.Millisecond)
	return cmd, "http://127.0.0.1:" + strconv.Itoa(port)
}

// smoke runs the deploy's own look at a function.
func smoke(t *testing.T, function, url string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../scripts/smoke.sh", function, url)
	cmd.Env = append(os.Environ(), "SMOKE_PUBLIC=yes", "IDENTITY_TOKEN=x", "PAUSE=0.01")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestImagesServeAndEndInGoodOrder(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is missing")
	}
	for _, function := range []string{"health", "lease"} { // reconcile's is like them, and takes minutes to link cold
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			binary := build(t, function)
			cmd, url := start(t, binary)
			out, err := smoke(t, function, url)
			require.Error(t, err, "a function that lacks its configuration fails the test before it gets traffic")
			assert.Contains(t, out, "PROJECT_ID: must be set")
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, cmd.Wait())

			emulator := os.Getenv("FIRESTORE_EMULATOR_HOST")
			if emulator == "" {
				return
			}
			for _, auth := range []string{"", "iam"} { // off Cloud Run nobody has checked a token for iam
				_, url = start(t, binary, "PROJECT_ID=p-"+uuid.NewString()[:8], "FIRESTORE_EMULATOR_HOST="+emulator, "AUTH="+auth)
				out, err = smoke(t, function, url)
				require.NoError(t, err, "%s", out)
				assert.Equal(t, function == "lease" && auth == "iam", strings.Contains(out, "by their keys"), out)
			}
		})
	}
}

func TestOnlyReconcileLinksTheComputeClient(t *testing.T) {
	t.Parallel()
	for function, want := range map[string]bool{"reconcile": true, "health": false, "lease": false} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+function).Output()
		require.NoError(t, err)
		assert.Equal(t, want, strings.Contains(string(out), "cloud.google.com/go/compute/apiv1\n"), function)
	}
}
