package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gatewayOf runs the command gateway and returns a crawler that uses it.
func gatewayOf(t *testing.T, f *function, args ...string) (client *http.Client, errs *buffer, end func() int) {
	t.Helper()
	var out buffer
	errs = &buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig(t)
	r.clock = nil // the wall clock: leases end by it
	c := r.cli(nil, "", &out, errs)
	ended := make(chan int, 1)
	go func() {
		ended <- c.run(ctx, append([]string{"gateway", "--url", f.url, "--listen", "127.0.0.1:0"}, args...))
	}()
	r.sees(&out, "\n")
	address, ok := strings.CutPrefix(strings.TrimSpace(out.String()), "gateway on ")
	require.True(t, ok)
	u, err := url.Parse(address)
	require.NoError(t, err)
	client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}}
	return client, errs, func() int { cancel(); return <-ended }
}

func get(t *testing.T, client *http.Client, address string) (status int, body string) {
	t.Helper()
	resp, err := client.Get(address)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

func TestGatewayLeasesForCrawlersThatKnowNothingOfLeases(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil, goodProxy(t))
	client, errs, end := gatewayOf(t, f, "--label", "pool=news", "--rotate", "sticky")
	for range 2 {
		status, body := get(t, client, "http://shop.example.com/a")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "through the proxy to http://shop.example.com/a\n", body)
	}
	require.Len(t, f.called("/v1/leases"), 1, "sticky")
	require.Contains(t, f.called("/v1/leases")[0], `"target":"shop.example.com"`)
	require.Contains(t, f.called("/v1/leases")[0], `"waitSeconds":10`, "a busy fleet is no error of the site's")
	require.EqualValues(t, 1, f.live())
	require.Equal(t, exitOK, end())
	require.Zero(t, f.live(), "the end gives every lease back")
	require.NotContains(t, errs.String(), planted)
}

func TestGatewayLeavesProxiesThatFail(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dead := l.Addr().String()
	require.NoError(t, l.Close())
	f := newFunction(t, nil, dead, goodProxy(t))
	client, errs, end := gatewayOf(t, f)
	for range 8 {
		status, body := get(t, client, "http://shop.example.com/a")
		require.Equal(t, http.StatusOK, status, body)
	}
	require.Equal(t, exitOK, end())
	require.Zero(t, f.live())
	releases := strings.Join(f.called(":release"), "\n")
	require.Contains(t, releases, `"outcome":"ok"`)
	require.Contains(t, releases, `"outcome":"error"`, "8 times the live one of two by chance is 1 in 256")
	require.Contains(t, errs.String(), "proxy failed, trying another")
	require.NotContains(t, errs.String(), planted)
}

func TestGatewayPassesRefusalsOnWithTheirReason(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil, goodProxy(t))
	client, _, end := gatewayOf(t, f, "--label", "pool=nowhere")
	resp, err := client.Get("http://shop.example.com/")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Contains(t, string(body), "FILTER_EMPTY")
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	require.Equal(t, exitOK, end())
}

func TestGatewayRenewsWhatItHolds(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil, goodProxy(t))
	client, _, end := gatewayOf(t, f, "--rotate", "1h", "--ttl", "10s")
	get(t, client, "http://shop.example.com/")
	require.Eventually(t, func() bool { return len(f.called(":renew")) > 0 }, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, exitOK, end())
	require.Zero(t, f.live())
}

func TestGatewaySaysWhatItsFlagsMustBe(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, row := range []struct {
		args []string
		code int
		errs string
	}{
		{[]string{"--rotate", "never"}, exitUsage, `--rotate "never": must be request, sticky or a duration`},
		{[]string{"--ban", "many"}, exitUsage, `--ban "many": must be status codes`},
		{[]string{"--attempts", "0"}, exitUsage, "--attempts must be between 1 and 10"},
		{[]string{"--ttl", "2h"}, exitUsage, "--ttl must be"},
		{[]string{"--url", "nowhere"}, exitUsage, "must be http://HOST"},
		{[]string{"extra"}, exitUsage, "unknown command"},
		{[]string{"--listen", taken.Addr().String()}, exitFailed, "address already in use"},
	} {
		got := newRig(t).run("", append([]string{"gateway"}, row.args...)...)
		require.Equal(t, row.code, got.code, got.errs)
		require.Contains(t, got.errs, row.errs)
	}
}
