package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCtrlCEndsMakeRunInGoodOrder interrupts `make run` as a terminal does: the whole process group
// gets the signal.
func TestCtrlCEndsMakeRunInGoodOrder(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("needed where CI is set: %v", err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
	var stdout, stderr lines
	cmd := exec.Command("make", "-C", "..", "--no-print-directory", "run", "RUN_FLAGS=--store memory --port 0")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "MAKEFLAGS=")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // make ends by the signal, as it should
		close(done)
	}()
	interrupt := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	t.Cleanup(func() {
		interrupt()
		<-done
	})
	require.Eventually(t, func() bool {
		select {
		case <-done:
			return true
		default:
			return strings.Contains(stdout.String(), "\nproxyfleet ready http://")
		}
	}, 3*time.Minute, 20*time.Millisecond, "not ready")
	require.Contains(t, stdout.String(), "proxyfleet ready", "%s", &stderr)
	interrupt()
	<-done
	require.NotContains(t, stderr.String(), "Error")
	require.ErrorIs(t, syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH, "processes are left")
}
