package health

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// patience is the timeout of probes that are meant to run into it.
const patience = 500 * time.Millisecond

// leaveNothing fails the test if it leaves a goroutine or a socket behind. Call it first. Tests that
// call it must not run in parallel.
func leaveNothing(t *testing.T) {
	t.Helper()
	before, ignore := sockets(), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, ignore)
		require.Eventually(t, func() bool { return sockets() <= before }, 5*time.Second, 5*time.Millisecond, "sockets are left open")
	})
}

// sockets counts this process's open sockets; it is always 0 where there is no /proc.
func sockets() int {
	fds, _ := os.ReadDir("/proc/self/fd")
	n := 0
	for _, fd := range fds {
		if link, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(link, "socket:") {
			n++
		}
	}
	return n
}

// listen serves each connection with f on a free port, until the test ends.
func listen(t *testing.T, address string, f func(net.Conn)) (host string, port int32) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() { defer c.Close(); f(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return split(t, l.Addr().String())
}

func split(t *testing.T, address string) (string, int32) {
	t.Helper()
	host, p, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(p)
	require.NoError(t, err)
	return host, int32(port)
}

// until waits for the other side to close.
func until(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// reset closes c so that the other side sees a reset.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// request reads the head of a request off c.
func request(c net.Conn) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return &http.Request{Header: http.Header{}}
	}
	return r
}

// reply makes a proxy that answers every request with the given text, then lingers.
func reply(text string) func(net.Conn) {
	return func(c net.Conn) {
		request(c)
		_, _ = io.WriteString(c, text)
		until(c)
	}
}

// pipe connects c with address and copies until either side is done.
func pipe(c net.Conn, address string) {
	up, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(up, c); _ = up.Close() })
	_, _ = io.Copy(c, up)
	_ = c.Close()
	_ = up.Close()
	wg.Wait()
}

// tunnel makes a proxy that opens tunnels with the given reply.
func tunnel(established string) func(net.Conn) {
	return func(c net.Conn) {
		target := request(c).Host
		_, _ = io.WriteString(c, established)
		pipe(c, target)
	}
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// divert makes a proxy that opens tunnels to another server than the one it was asked for.
func divert(address string) func(net.Conn) {
	return func(c net.Conn) {
		request(c)
		_, _ = io.WriteString(c, established)
		pipe(c, address)
	}
}

// forward is a proxy for plain http.
func forward(c net.Conn) {
	r := request(c)
	up, err := net.Dial("tcp", r.URL.Host)
	if err != nil {
		return
	}
	defer up.Close()
	r.Header.Del("Proxy-Authorization")
	_ = r.Write(up)
	_, _ = io.Copy(c, up)
}

// serveTLS starts a target with the given certificate.
func serveTLS(t *testing.T, cert tls.Certificate, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients of these tests hang up on purpose
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func servePlain(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// scene is what most tests of Probe need: an authority that is trusted and a target that is fine.
type scene struct {
	issuer issuer
	prober *Prober
	target *httptest.Server
}

func newScene(t *testing.T, target http.HandlerFunc) scene {
	t.Helper()
	a := newIssuer(t)
	if target == nil {
		target = noContent
	}
	return scene{a, &Prober{RootCAs: a.pool()}, serveTLS(t, a.issue(t, nil), target)}
}

func noContent(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// through probes the scene's target through a proxy that behaves like f.
func (s scene) through(t *testing.T, f func(net.Conn), change ...func(*Request)) Result {
	t.Helper()
	host, port := listen(t, "127.0.0.1:0", f)
	r := Request{Host: host, Port: port, Check: fleet.HealthCheck{URL: s.target.URL}, Timeout: 5 * time.Second}
	for _, c := range change {
		c(&r)
	}
	return s.prober.Probe(t.Context(), r)
}

func impatient(r *Request) { r.Timeout = patience }
