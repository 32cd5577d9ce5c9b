package guest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
	real "crawl.example.com/proxyfleet/pkg/provider/gce"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// freePort returns a port that nobody listens on at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func booted(name, port string) gce.Booted {
	return gce.Booted{Name: name, Zone: "us-east1-b", Metadata: map[string]string{"proxyfleet-port": port}}
}

// connect asks the proxy for a tunnel and returns its answer and, when that is 200, what the origin
// says through it.
func connect(t *testing.T, proxy, origin, header string) (int, string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", proxy, 5*time.Second)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", origin, origin, header)
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	if answer.StatusCode != http.StatusOK {
		return answer.StatusCode, ""
	}
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")
	page, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}

func TestABootedInstanceReallyProxies(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") }))
	defer origin.Close()
	guests, err := New("user:p@ss")
	require.NoError(t, err)
	defer guests.Close()
	now := time.Now()
	server := gce.New(gce.Options{Now: func() time.Time { return now }, OnRunning: guests.Running, OnGone: guests.Gone})
	require.NoError(t, server.Start("127.0.0.1:0"))
	defer server.Close()
	p, err := real.Open(real.Settings{Project: "crawl-project", Endpoint: server.URL()}, time.Now)
	require.NoError(t, err)
	defer p.Close()

	port := freePort(t)
	made, err := p.Create(t.Context(), provider.CreateRequest{
		Name: "proxy-a", Owner: "o", UID: "u", Incarnation: 1, SpecHash: "h", ProxyName: "p",
		Zone: "us-east1-b", MachineType: "e2-micro", Port: int32(port),
	})
	require.NoError(t, err)
	now = now.Add(time.Minute)
	vm, err := p.Get(t.Context(), made.Ref())
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", vm.Address)

	at := net.JoinHostPort(vm.Address, strconv.Itoa(port))
	target := strings.TrimPrefix(origin.URL, "http://")
	status, _ := connect(t, at, target, "")
	assert.Equal(t, http.StatusProxyAuthRequired, status)
	status, page := connect(t, at, target, "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "page", page)

	require.NoError(t, p.Delete(t.Context(), made.Ref()))
	_, err = p.Get(t.Context(), made.Ref())
	require.NoError(t, err)
	_, err = net.DialTimeout("tcp", at, time.Second)
	assert.Error(t, err, "its port is free again")
}

func TestInstancesWithOnePortShareIt(t *testing.T) {
	t.Parallel()
	guests, err := New("")
	require.NoError(t, err)
	defer guests.Close()
	port := strconv.Itoa(freePort(t))
	a, b := booted("vm-a", port), booted("vm-b", port)
	assert.Equal(t, "127.0.0.1", guests.Running(a))
	assert.Equal(t, "127.0.0.1", guests.Running(b))
	guests.Gone(a)
	conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
	require.NoError(t, err, "the other one still has it")
	conn.Close()
	guests.Gone(b)
	_, err = net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
	assert.Error(t, err)
}

func TestAnInstanceWithoutAUsablePortHasNoAddress(t *testing.T) {
	t.Parallel()
	guests, err := New("")
	require.NoError(t, err)
	defer guests.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, port := range []string{"", "x", "0", "99999999999", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)} {
		assert.Empty(t, guests.Running(booted("vm", port)), port)
	}
	_, err = New("no-colon")
	assert.Error(t, err)
}
