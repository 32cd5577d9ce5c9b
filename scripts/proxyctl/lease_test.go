package main

import (
	"bufio"
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/lease"
)

func TestACommandRunsBehindALeasedProxy(t *testing.T) {
	t.Parallel()
	r, f := newRig(t), newFunction(t, nil, goodProxy(t))
	got := r.run("", "lease", "--url", f.url, "--label", "pool=news", "--target", "example.com", "--sticky", "k", "--holder", "me", "--ttl", "30s", "--wait", "1s", "--",
		"sh", "-c", "env | grep -i _proxy= | sort; exit 0")
	require.Equal(t, exitOK, got.code, got.errs)
	require.Equal(t, "leased proxy-0\n", got.errs)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 6)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		require.Contains(t, proxyVariables(), name)
		u, err := url.Parse(value)
		require.NoError(t, err)
		password, _ := u.User.Password()
		require.Equal(t, planted, password)
	}
	require.Len(t, f.called("/v1/leases"), 1)
	for _, part := range []string{`"holder":"me"`, `"ttlSeconds":30`, `"labels":{"pool":"news"}`, `"target":"example.com"`, `"stickyKey":"k"`, `"waitSeconds":1`, `"requestId":`} {
		require.Contains(t, f.called("/v1/leases")[0], part)
	}
	require.Equal(t, []string{`{"outcome":"ok","target":"example.com"}`}, f.called(":release"))
	require.Zero(t, f.live())
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil, goodProxy(t))
	secret := newRig(t).file("not-executable", "")
	for name, row := range map[string]struct {
		command []string
		code    int
		outcome string // "" for a command that never had a lease
	}{
		"success":                   {[]string{"true"}, 0, `{"outcome":"ok"}`},
		"failure":                   {[]string{"sh", "-c", "exit 7"}, 7, `{"outcome":"error"}`},
		"flags of the command":      {[]string{"sh", "-c", "exit 3", "--label"}, 3, `{"outcome":"error"}`},
		"ended by a signal":         {[]string{"sh", "-c", "kill -9 $$"}, 128 + 9, `{}`},
		"no such command":           {[]string{"no-such-command-here"}, 127, ""},
		"a file that is no program": {[]string{secret}, 126, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(f.called(":release"))
			got := newRig(t).run("", append([]string{"lease", "--url", f.url, "--"}, row.command...)...)
			require.Equal(t, row.code, got.code, got.errs)
			require.Zero(t, f.live())
			if row.outcome == "" {
				require.Contains(t, got.errs, "cannot be run")
				require.Len(t, f.called(":release"), before)
				return
			}
			require.Equal(t, row.outcome, f.called(":release")[before])
		})
	}
}

func TestWithoutALeaseTheCommandDoesNotRun(t *testing.T) {
	for name, row := range map[string]struct {
		auth lease.Authenticator
		args []string
		code int
		errs string
	}{
		"none matches":         {nil, []string{"--label", "pool=nowhere"}, exitNoLease, "no lease: FILTER_EMPTY: "},
		"no function there":    {nil, []string{"--url", "http://127.0.0.1:1"}, exitNoLease, "no lease: call the lease function"},
		"not allowed":          {lease.IAM{}, nil, exitNoLease, "no lease: UNAUTHENTICATED: "},
		"half a label":         {nil, []string{"--label", "pool"}, exitUsage, "must be k=v"},
		"too short a time":     {nil, []string{"--ttl", "1s"}, exitUsage, "--ttl must be between 10s and 1h"},
		"too long a wait":      {nil, []string{"--wait", "31s"}, exitUsage, "--wait must be between 0s and 30s"},
		"a URL that is none":   {nil, []string{"--url", "localhost:8080"}, exitUsage, "must be http://HOST"},
		"a password in a URL":  {nil, []string{"--url", "http://me:planted@localhost"}, exitUsage, "must have no credentials"},
		"a URL that is broken": {nil, []string{"--url", "http://me:planted@local host"}, exitUsage, "must be http://HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFunction(t, row.auth, goodProxy(t))
			args := append([]string{"lease", "--url", f.url}, append(row.args, "--", "sh", "-c", "echo ran")...)
			got := newRig(t).run("", args...)
			require.Equal(t, row.code, got.code, got.errs)
			require.Contains(t, got.errs, row.errs)
			require.NotContains(t, got.errs, "planted")
			require.Empty(t, got.out)
		})
	}
	got := newRig(t).run("", "lease")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.errs, "which command?")
}

func TestTheAPIKeyIsForTheFunctionAlone(t *testing.T) {
	t.Setenv(envAPIKey, "planted-key")
	f := newFunction(t, keyed("planted-key"), goodProxy(t))
	got := newRig(t).run("", "lease", "--url", f.url, "--", "env")
	require.Equal(t, exitOK, got.code, got.errs)
	require.NotContains(t, got.out+got.errs, "planted-key")
}

func TestALeaseIsRenewedWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil, goodProxy(t))
	done := newRig(t).file("done", "")
	require.NoError(t, os.Remove(done))
	got := make(chan said, 1)
	r := newRig(t)
	r.clock = nil // the wall clock: leases end by it
	go func() {
		got <- r.run("", "lease", "--url", f.url, "--ttl", "10s", "--", "sh", "-c", "while [ ! -e "+done+" ]; do sleep 0.05; done")
	}()
	require.Eventually(t, func() bool { return len(f.called(":renew")) > 0 }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, `{"ttlSeconds":10}`, f.called(":renew")[0])
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	require.Equal(t, said{exitOK, "", "leased proxy-0\n"}, <-got)
}

func TestALeaseThatEndsUnderItsCommandIsSaid(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil, goodProxy(t))
	done := newRig(t).file("done", "")
	require.NoError(t, os.Remove(done))
	got := make(chan said, 1)
	r := newRig(t)
	r.clock = nil
	go func() {
		got <- r.run("", "lease", "--url", f.url, "--ttl", "10s", "--", "sh", "-c", "while [ ! -e "+done+" ]; do sleep 0.05; done; exit 5")
	}()
	require.Eventually(t, func() bool { return f.live() == 1 }, 20*time.Second, 5*time.Millisecond)
	slots, err := f.store.ProxySlots(t.Context(), "proxy-0")
	require.NoError(t, err)
	require.NoError(t, f.store.DeleteSlot(t.Context(), slots[0]))
	require.Eventually(t, func() bool { return len(f.called(":renew")) > 0 }, 20*time.Second, 20*time.Millisecond)
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	ended := <-got
	require.Equal(t, 5, ended.code)
	require.Contains(t, ended.errs, "the lease has ended while the command runs: LEASE_EXPIRED")
	require.NotContains(t, ended.errs, slots[0].LeaseID)
	require.NotContains(t, ended.errs, "not given back")
}

func TestSignalsReachTheCommandAndTheLeaseGoesBack(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		f := newFunction(t, nil, goodProxy(t))
		self, err := os.Executable()
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, self, "lease", "--url", f.url, "--", "sh", "-c", "trap 'echo got it; exit 42' TERM INT HUP; echo began; i=0; while [ $i -lt 600 ]; do i=$((i+1)); sleep 0.05; done")
		cmd.Env = append(os.Environ(), "PROXYCTL_TEST_MAIN=1")
		cmd.Stderr = &buffer{}
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Equal(t, "began", lines.Text())
		require.EqualValues(t, 1, f.live())
		require.NoError(t, cmd.Process.Signal(s))
		require.True(t, lines.Scan())
		require.Equal(t, "got it", lines.Text())
		_ = cmd.Wait()
		require.Equal(t, 42, cmd.ProcessState.ExitCode())
		require.Zero(t, f.live(), "%v", s)
	}
}

func TestALostAnswerCostsNoSecondSlot(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil, goodProxy(t))
	first := true
	f.fail = func(path string) int {
		if strings.HasSuffix(path, "/v1/leases") && first {
			first = false
			return 502 // something in front of the function
		}
		return 0
	}
	got := newRig(t).run("", "lease", "--url", f.url, "--", "true")
	require.Equal(t, exitOK, got.code, got.errs)
	asked := f.called("/v1/leases")
	require.Len(t, asked, 2)
	require.Equal(t, asked[0], asked[1], "the same requestId")
}
