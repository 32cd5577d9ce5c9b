// Package examples has clients of the lease function in other languages, and the tests that run them
// against the real function and real proxies.
package examples

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/client/clienttest"
)

// site is a page that says which proxy it was asked through, and bans some.
func site(t *testing.T, banned ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range banned {
			if r.Header.Get("X-Proxy") == name {
				w.WriteHeader(http.StatusForbidden)
			}
		}
		_, _ = fmt.Fprintf(w, "page by %s\n", r.Header.Get("X-Proxy"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// needs skips a test where a program is missing: the examples need none of them to be built.
func needs(t *testing.T, what string, command ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %s is not installed: %v %s", what, err, bytes.TrimSpace(out))
	}
}

// result is what a program did.
type result struct {
	out, errors string
	code        int
}

// run runs a program of an example against a plane.
func run(t *testing.T, p *clienttest.Plane, dir string, env []string, command ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LEASE_URL="+p.URL, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=", "no_proxy=")
	cmd.Env = append(cmd.Env, env...)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "it hangs: %s", errors.String())
	r := result{out.String(), errors.String(), cmd.ProcessState.ExitCode()}
	if r.code < 0 {
		require.NoError(t, err)
	}
	return r
}

// planted keeps the password out of what programs print.
func (r result) requireNoSecret(t *testing.T) {
	t.Helper()
	for _, secret := range []string{clienttest.Password, "%40%2F%3F", "k3y"} {
		require.NotContains(t, r.out+r.errors, secret)
	}
}

func TestCurlLeasesFetchesAndGivesBack(t *testing.T) {
	t.Parallel()
	needs(t, "curl with jq", "sh", "-c", "curl --version && jq --version")
	p := clienttest.New(t, 1, "a")
	var tokens []string
	p.Before(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		next.ServeHTTP(w, r)
	})
	url := site(t)
	r := run(t, p, "curl", []string{"PROXYFLEET_API_KEY=k3y"}, "./lease.sh", url, url)
	require.Equal(t, 0, r.code, r.errors)
	require.Equal(t, "page by a\npage by a\n", r.out)
	require.Equal(t, []string{"Bearer k3y", "Bearer k3y"}, tokens)
	require.Zero(t, p.Live())
	require.JSONEq(t, `{"outcome":"ok"}`, p.Reports("a")[0])
	r.requireNoSecret(t)
}

func TestCurlReportsAFailureAndShowsRefusals(t *testing.T) {
	t.Parallel()
	needs(t, "curl with jq", "sh", "-c", "curl --version && jq --version")
	p := clienttest.New(t, 1, "a")
	p.Proxies["a"].FailWith(clienttest.Slam)
	r := run(t, p, "curl", nil, "./lease.sh", site(t))
	require.NotEqual(t, 0, r.code)
	require.Zero(t, p.Live())
	require.JSONEq(t, `{"outcome":"error"}`, p.Reports("a")[0])
	r.requireNoSecret(t)

	r = run(t, p, "curl", []string{`LEASE_REQUEST={"region":"none"}`}, "./lease.sh", site(t))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.errors, "no lease: FILTER_EMPTY: ")
}

func TestWithoutAURLNothingIsLeased(t *testing.T) {
	t.Parallel()
	for dir, command := range map[string][]string{"curl": {"./lease.sh"}, "python": {python(t), "crawl.py"}} {
		p := clienttest.New(t, 1, "a")
		r := run(t, p, dir, nil, command...)
		require.NotZero(t, r.code, dir)
		require.Contains(t, r.errors, "which URL?")
		require.Zero(t, p.Calls("/v1/leases"))
	}
}

func python(t *testing.T) string {
	t.Helper()
	needs(t, "python3 with requests", "python3", "-c", "import requests")
	return "python3"
}

func TestPythonFetchesThroughLeasesAndLeavesBannedProxies(t *testing.T) {
	t.Parallel()
	py := python(t)
	p := clienttest.New(t, 5, "a", "b")
	url := site(t, "a")
	r := run(t, p, "python", nil, py, "crawl.py", url, url, url, url)
	require.Equal(t, 0, r.code, r.errors)
	require.Equal(t, 4, strings.Count(r.out, "200 "+url), r.out)
	require.Zero(t, p.Live())
	for _, body := range p.Reports("a") {
		require.JSONEq(t, `{"outcome":"banned"}`, body)
	}
	for _, body := range p.Reports("b") {
		require.JSONEq(t, `{"outcome":"ok"}`, body)
	}
	require.Zero(t, p.Proxies["b"].Refused.Load(), "the password arrives byte for byte")
	r.requireNoSecret(t)
}

func TestPythonReportsProxiesThatFail(t *testing.T) {
	t.Parallel()
	py := python(t)
	p := clienttest.New(t, 5, "a", "b")
	p.Proxies["a"].FailWith(clienttest.Slam)
	url := site(t)
	r := run(t, p, "python", nil, py, "crawl.py", url, url, url, url, url, url)
	require.Equal(t, 0, r.code, r.errors)
	for _, body := range p.Reports("a") {
		require.JSONEq(t, `{"outcome":"error"}`, body)
	}
	r = run(t, clienttest.New(t, 5), "python", nil, py, "crawl.py", url)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.errors, "NO_PROXIES")
	r.requireNoSecret(t)
}

// script runs a piece of Python beside the library.
func script(t *testing.T, p *clienttest.Plane, source string) result {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "script.py")
	require.NoError(t, os.WriteFile(file, []byte("import sys, time, threading\nfrom proxyfleet import *\nimport proxyfleet\n"+source), 0o600))
	here, err := filepath.Abs("python")
	require.NoError(t, err)
	return run(t, p, dir, []string{"PYTHONPATH=" + here}, python(t), file)
}

func TestPythonRenewsUntilTheEndByTheServersClock(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 1, "a")
	p.Advance(-time.Hour)
	r := script(t, p, `
with Lease(ttlSeconds=10) as lease:
    first = lease.until
    while lease.until == first:
        time.sleep(0.05)
    lease.check()
    print("renewed", lease.until > first, lease.draining)
`)
	require.Equal(t, "renewed True False\n", r.out, r.errors)
	require.Positive(t, p.Calls("renew"))
	require.Zero(t, p.Live())
}

func TestPythonNoticesThatALeaseIsLost(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 1, "a")
	r := script(t, p, `
client = Client()
with Lease(client, ttlSeconds=10) as lease:
    client.release(lease.id)
    assert lease.lost.wait(30)
    try:
        lease.proxies
    except LeaseLost as lost:
        print(lost)
`)
	require.Equal(t, "the lease on a has ended\n", r.out, r.errors)
}

func TestPythonRepeatsLostCalls(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	calls := 0
	p.Before(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch calls++; calls % 4 {
		case 1: // served, and the answer lost
			next.ServeHTTP(httptest.NewRecorder(), r)
			clienttest.Slam(w, r)
		case 2: // something in front of it
			http.Error(w, "upstream", http.StatusBadGateway)
		case 3: // half an answer
			w.Header().Set("Content-Length", "1000")
			_, _ = fmt.Fprint(w, `{"id":`)
		default:
			next.ServeHTTP(w, r)
		}
	})
	r := script(t, p, `
with Lease() as lease:
    print(lease.name)
`)
	require.Equal(t, "a\n", r.out, r.errors)
	require.Zero(t, p.Live(), "the repeated call led to the same lease")
	require.Equal(t, 8, calls)
}

func TestPythonGivesBackWhenTheCrawlFails(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	r := script(t, p, `
import requests
for error in (requests.Timeout(), requests.ConnectionError(), requests.HTTPError(), KeyError("x")):
    try:
        with Lease():
            raise error
    except Exception:
        pass
`)
	require.Equal(t, 0, r.code, r.errors)
	require.Zero(t, p.Live())
	require.Equal(t, []string{`{"outcome": "timeout"}`, `{"outcome": "error"}`, `{}`, `{}`}, p.Reports("a"), "what is not the proxy's fault is not put on it")
}

func TestPythonSaysWhyThereIsNoLease(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	r := script(t, p, `
try:
    with Lease(region="none"):
        pass
except Refused as refused:
    print(refused.code, refused.reason, refused.retry_after, refused.ended)
try:
    Client("http://127.0.0.1:1").acquire()
except ConnectionError as error:
    print(error)
`)
	require.Contains(t, r.out, "503 FILTER_EMPTY 30.0 False\n", r.errors)
	require.Contains(t, r.out, "the lease function does not answer: ")
}
