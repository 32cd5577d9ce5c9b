package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/emulator/gcloud"
)

// buildOnce builds the emulator as `go build ./emulator` does, once for all tests.
var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "proxyfleet-test-")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-o", filepath.Join(dir, "emulator")}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args = append(args, "-race")
			}
		}
	}
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "emulator"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildOnce(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// local is a plane that runs as a user's would.
type local struct {
	state

	cmd    *exec.Cmd
	stdout *lines
	stderr *lines
	done   chan struct{}
	err    error
}

// lines collects output while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs the emulator with the given flags.
func start(t *testing.T, args ...string) *local {
	t.Helper()
	binary, err := buildOnce()
	require.NoError(t, err)
	l := &local{stdout: &lines{}, stderr: &lines{}, done: make(chan struct{})}
	l.cmd = exec.Command(binary, args...)
	// The plane starts emulators of its own, as it would for a newcomer.
	l.cmd.Env = append(os.Environ(), "FIRESTORE_EMULATOR_HOST=", "PUBSUB_EMULATOR_HOST=", "TMPDIR="+t.TempDir())
	l.cmd.Stdout, l.cmd.Stderr = l.stdout, l.stderr
	require.NoError(t, l.cmd.Start())
	go func() {
		l.err = l.cmd.Wait()
		close(l.done)
	}()
	t.Cleanup(func() {
		_ = l.cmd.Process.Signal(syscall.SIGTERM)
		<-l.done
	})
	return l
}

// up runs the emulator and waits until it says that it is ready.
func up(t *testing.T, args ...string) *local {
	t.Helper()
	file := filepath.Join(t.TempDir(), "state.json")
	l := start(t, append(args, "--port", "0", "--tick", "1s", "--state", file)...)
	require.Eventually(t, func() bool {
		select {
		case <-l.done:
			return true
		default:
			return strings.Contains(l.stdout.String(), "\nproxyfleet ready http://")
		}
	}, 90*time.Second, 20*time.Millisecond, "not ready")
	require.Contains(t, l.stdout.String(), "proxyfleet ready", "%s", l.stderr)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &l.state))
	return l
}

// interrupt is a user's Ctrl-C; nothing of the plane may be left after it.
func (l *local) interrupt(t *testing.T) {
	t.Helper()
	require.NoError(t, l.cmd.Process.Signal(os.Interrupt))
	<-l.done
	require.NoError(t, l.err, "a stop that was asked for is no failure: %s", l.stderr)
	for _, pid := range l.Pids {
		require.Error(t, syscall.Kill(pid, 0), "process %d is left", pid)
	}
	require.NoDirExists(t, l.LogDir)
}

// call makes one request and decodes the JSON answer.
func call(t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var answer map[string]any
	require.NoError(t, json.Unmarshal(data, &answer), "%s", data)
	return resp.StatusCode, answer
}

// lease polls as a crawler would, for as long as a fresh plane may take.
func (l *local) lease(t *testing.T, body string) map[string]any {
	t.Helper()
	var answer map[string]any
	require.Eventually(t, func() bool {
		var status int
		status, answer = call(t, http.MethodPost, l.LeaseURL+"/v1/leases", body)
		return status == http.StatusCreated
	}, 15*time.Second, 200*time.Millisecond, "no lease: %v", func() any { return answer })
	return answer
}

// fetch crawls the origin through a lease with curl, as the README says.
func (l *local) fetch(t *testing.T, endpointURL string) string {
	t.Helper()
	curl, err := exec.LookPath("curl")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), curl, "-sS", "--max-time", "20", "--proxytunnel", "-x", endpointURL, "--noproxy", "",
		"--cacert", l.OriginCAFile, "-w", "\n%{http_code}", l.OriginURL+"/page").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func endpointURL(lease map[string]any) string {
	return lease["endpoint"].(map[string]any)["url"].(string)
}

func needEmulators(t *testing.T) {
	t.Helper()
	if _, err := gcloud.Find(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("needed where CI is set: %v", err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
}

func eachStore(t *testing.T, test func(t *testing.T, store string)) {
	for _, store := range []string{storeMemory, storeFirestore} {
		t.Run(store, func(t *testing.T) {
			if store == storeFirestore {
				needEmulators(t)
			}
			test(t, store)
		})
	}
}

func TestAnEvening(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		l := up(t, "--store", store)
		require.Equal(t, store, l.Store)

		lease := l.lease(t, `{"labels":{"pool":"news"},"holder":"evening","ttlSeconds":60}`)
		body := l.fetch(t, endpointURL(lease))
		require.Contains(t, body, "hello from the origin")
		require.True(t, strings.HasSuffix(body, "\n200"), body)

		id := lease["id"].(string)
		for range 2 {
			status, _ := call(t, http.MethodPost, l.LeaseURL+"/v1/leases/"+id+":release", `{"outcome":"ok"}`)
			require.Equal(t, http.StatusOK, status, "a release can be repeated")
		}
		status, _ := call(t, http.MethodPost, l.LeaseURL+"/v1/leases/"+id+":renew", `{}`)
		require.Equal(t, http.StatusGone, status)
		status, answer := call(t, http.MethodPost, l.LeaseURL+"/v1/leases", `{"ttlSeconds":-1}`)
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, fmt.Sprint(answer), "ttlSeconds")

		external := l.lease(t, `{"labels":{"country":"de"}}`)
		require.Contains(t, l.fetch(t, endpointURL(external)), "hello from the origin")
		l.interrupt(t)
	})
}

func TestTakenPortIsOneClearLine(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer held.Close()
	port := fmt.Sprint(held.Addr().(*net.TCPAddr).Port)
	l := start(t, "--store", "memory", "--port", port)
	<-l.done
	require.Error(t, l.err)
	require.Contains(t, l.stderr.String(), "--port "+port+" is taken")
	require.Equal(t, 1, strings.Count(l.stderr.String(), "\n"))
}

func TestBadFilesAreNamedBeforeAnythingStarts(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	twoFaults := `
apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata: {name: a}
spec: {mode: External, endpoint: {host: proxy.example.net, port: 70000}, maxLeases: -1}
`
	for _, row := range []struct {
		name string
		args []string
		want []string
	}{
		{"two faults of one spec", []string{"--specs", file("two.yaml", twoFaults)}, []string{"spec.endpoint.port", "spec.maxLeases"}},
		{"unknown key", []string{"--specs", file("key.yaml", strings.Replace(twoFaults, "maxLeases: -1", "maxLease: 1", 1))}, []string{"maxLease", "key.yaml"}},
		{"empty file", []string{"--specs", file("empty.yaml", "")}, []string{"empty.yaml"}},
		{"not UTF-8", []string{"--specs", file("latin.yaml", "a: \xff\xfe")}, []string{"latin.yaml", "UTF-8"}},
		{"no such file", []string{"--specs", filepath.Join(dir, "none.yaml")}, []string{"none.yaml"}},
		{"unknown provider type", []string{"--providers", file("p.yaml", "- {name: x, type: azure, azure: {}}")}, []string{"azure"}},
		{"unknown store", []string{"--store", "sqlite"}, []string{"--store"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := start(t, append([]string{"--store", "memory", "--port", "0"}, row.args...)...)
			<-l.done
			require.Error(t, l.err)
			for _, want := range row.want {
				require.Contains(t, l.stderr.String(), want)
			}
			require.NotContains(t, l.stdout.String(), "ready")
		})
	}
}

func TestDeadEmulatorEndsTheRunAndNamesItself(t *testing.T) {
	needEmulators(t)
	l := up(t, "--store", "firestore")
	for _, pid := range l.Pids[1:] {
		if command(t, pid) == "java" {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			break
		}
	}
	<-l.done
	require.Error(t, l.err)
	require.Contains(t, l.stderr.String(), "emulator ended: signal: killed")
	for _, pid := range l.Pids {
		require.Error(t, syscall.Kill(pid, 0), "process %d is left", pid)
	}
}

func command(t *testing.T, pid int) string {
	t.Helper()
	out, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil { // not Linux
		out, err = exec.CommandContext(t.Context(), "ps", "-o", "comm=", "-p", fmt.Sprint(pid)).Output()
	}
	require.NoError(t, err)
	return filepath.Base(strings.TrimSpace(string(out)))
}
