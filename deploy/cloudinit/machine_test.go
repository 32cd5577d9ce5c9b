package cloudinit

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// needPackage has a Debian package installed: it is here, or can be installed because we are root.
// Otherwise the test skips, except in CI. Nothing is started by an installation.
func needPackage(t *testing.T, pkg, binary string) {
	t.Helper()
	if _, err := os.Stat(binary); err == nil {
		return
	}
	if os.Geteuid() != 0 {
		giveUp(t, pkg+" is not installed and we are not root: apt-get install "+pkg)
	}
	const policy = "/usr/sbin/policy-rc.d" // says whether services may be started
	if _, err := os.Stat(policy); os.IsNotExist(err) {
		require.NoError(t, os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755))
		defer os.Remove(policy)
	}
	script := "apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends " + pkg
	cmd := exec.Command("sh", "-c", script+" || { apt-get -q update && "+script+"; }")
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		giveUp(t, pkg+" cannot be installed: "+lastLine(out))
	}
}

// giveUp skips at a desk and fails in CI.
func giveUp(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		require.FailNow(t, why)
	}
	t.Skip(why)
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// run starts the example's proxy with the configuration below root and waits until it listens.
func (e example) run(t *testing.T, root, address string) {
	t.Helper()
	cmd := e.command(filepath.Join(root, e.config))
	log, err := os.Create(filepath.Join(root, "output"))
	require.NoError(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			out, _ := os.ReadFile(filepath.Join(root, "output"))
			t.Logf("the proxy said: %s", out)
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		return assert.NoError(t, conn.Close())
	}, 30*time.Second, 50*time.Millisecond, "the proxy does not listen")
}
