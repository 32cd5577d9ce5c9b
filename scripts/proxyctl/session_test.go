package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheReadmesSessionIsWhatHappens runs the plane and the commands of the README's session, and compares
// what they print.
func TestTheReadmesSessionIsWhatHappens(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: takes a minute")
	}
	for _, name := range []string{"bash", "curl", "gcloud"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("needed where CI is set: %v", err)
			}
			t.Skipf("SKIPPED: %v", err)
		}
	}
	t.Parallel()
	dir := t.TempDir()
	program, state, log := filepath.Join(dir, "emulator"), filepath.Join(dir, "state.json"), &buffer{}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../emulator").CombinedOutput()
	require.NoError(t, err, "%s", out)
	plane := exec.Command(program, "--store", "firestore", "--port", "0", "--tick", "1s", "--state", state)
	plane.Env = append(os.Environ(), "FIRESTORE_EMULATOR_HOST=", "PUBSUB_EMULATOR_HOST=", "TMPDIR="+dir) // emulators of its own
	plane.Stdout, plane.Stderr = log, log
	require.NoError(t, plane.Start())
	t.Cleanup(func() {
		_ = plane.Process.Signal(syscall.SIGTERM)
		_ = plane.Wait()
	})
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "proxyfleet ready") }, 3*time.Minute, 100*time.Millisecond, "the plane is not up")
	for range 2 { // on a busy machine a probe may fail, and that is another story
		if out, err = exec.CommandContext(t.Context(), "../record-session.sh", "--check", state).CombinedOutput(); err == nil {
			break
		}
	}
	require.NoError(t, err, "%s\n%s", out, log)
}
