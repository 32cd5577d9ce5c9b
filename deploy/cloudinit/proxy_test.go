package cloudinit

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The addresses of the private network that the second test makes for itself. The public ones are of
// a documentation range, which is blocked by nobody.
const (
	public   = "203.0.113.10"
	metadata = "169.254.169.254"
)

var private = []string{"10.1.2.3", "172.16.0.1", "172.31.255.1", "192.168.1.1", "100.64.0.1", "198.18.0.1"}

// TestOnLoopback runs each proxy on this machine's loopback. There the only place that it may lead to
// is a port on 127.0.0.1, so that range is allowed by the parameter that the script has for this.
func TestOnLoopback(t *testing.T) {
	if os.Getenv(inside) != "" {
		t.Skip("not in a network of its own")
	}
	for _, e := range examples {
		t.Run(e.pkg, func(t *testing.T) {
			needPackage(t, e.pkg, e.binary)
			origin := listen(t, "127.0.0.1:0")
			target := origin.Addr().String()
			_, targetPort, err := net.SplitHostPort(target)
			require.NoError(t, err)
			port := freePort(t)
			root := e.install(t, "crawler:"+e.password)
			out, err := configure(root, "PROXYFLEET_PORT="+port, "PROXYFLEET_PORTS=443 "+targetPort, "PROXYFLEET_LOOPBACK=allowed")
			require.NoError(t, err, "%s", out)
			e.run(t, root, "127.0.0.1:"+port)
			p := proxy{t: t, address: "127.0.0.1:" + port, user: "crawler", password: e.password}
			p.checkRefusals()
			p.checkAllowed(target)
		})
	}
}

// proxy is a running proxy and who may use it.
type proxy struct {
	t                       *testing.T
	address, user, password string
}

// checkRefusals checks what holds everywhere: who may not use it, and where nobody may go.
func (p proxy) checkRefusals() {
	anonymous := p
	anonymous.user = ""
	wrong := p
	wrong.password += "x"
	for _, at := range []string{public + ":443", metadata + ":443", "127.0.0.1:443"} {
		assert.Equal(p.t, http.StatusProxyAuthRequired, anonymous.connect(at), "anonymous CONNECT %s", at)
		// tinyproxy says 401 to a wrong password.
		assert.Contains(p.t, []int{http.StatusProxyAuthRequired, http.StatusUnauthorized}, wrong.connect(at), "wrong password, CONNECT %s", at)
	}
	assert.Equal(p.t, http.StatusProxyAuthRequired, anonymous.get("http://"+public+"/"))
	assert.Equal(p.t, http.StatusProxyAuthRequired, anonymous.get("http://"+metadata+"/computeMetadata/v1/"))
	hosts := append([]string{
		metadata, "metadata.google.internal", "metadata", "localhost", "x.internal", "0.0.0.0",
		"2852039166", "0xa9fea9fe", "0xa9.254.169.254", "0251.0376.0251.0376", "169.254.43518", metadata + ".",
		"[::1]", "[::]", "[::ffff:169.254.169.254]", "[fd20:ce::254]", "[fe80::1]",
	}, private...)
	for _, host := range hosts {
		p.refused(host + ":443")
		p.refusedPlain(host + ":80")
	}
	p.refused(metadata + ":80")
	p.refused(public + ":22")
}

// refused checks that the right password opens no tunnel to a place.
func (p proxy) refused(at string) {
	status := p.connect(at)
	assert.GreaterOrEqual(p.t, status, 400, "CONNECT %s", at)
	assert.NotEqual(p.t, http.StatusProxyAuthRequired, status, "CONNECT %s", at)
}

// refusedPlain checks the same for a plain request.
func (p proxy) refusedPlain(host string) {
	assert.GreaterOrEqual(p.t, p.get("http://"+host+"/"), 400, "GET http://%s/", host)
}

// checkAllowed checks that the right password leads to a public place, by tunnel and plainly.
func (p proxy) checkAllowed(at string) {
	assert.Equal(p.t, http.StatusOK, p.connect(at), "CONNECT %s", at)
	assert.Equal(p.t, http.StatusOK, p.get("http://"+at+"/"), "GET http://%s/", at)
}

// connect asks for a tunnel and, when it gets one, for a page through it.
func (p proxy) connect(at string) (status int) {
	conn, r := p.send(fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n", at, at))
	defer conn.Close()
	answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	require.NoError(p.t, err, "CONNECT %s", at)
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")
		page, err := http.ReadResponse(r, nil)
		require.NoError(p.t, err, "through CONNECT %s", at)
		page.Body.Close()
	}
	return answer.StatusCode
}

// get asks for a page by its URL.
func (p proxy) get(url string) (status int) {
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	conn, r := p.send(fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", url, host))
	defer conn.Close()
	answer, err := http.ReadResponse(r, nil)
	require.NoError(p.t, err, "GET %s", url)
	answer.Body.Close()
	return answer.StatusCode
}

func (p proxy) send(head string) (net.Conn, *bufio.Reader) {
	conn, err := net.DialTimeout("tcp", p.address, 5*time.Second)
	require.NoError(p.t, err)
	require.NoError(p.t, conn.SetDeadline(time.Now().Add(90*time.Second)))
	if p.user != "" {
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.user+":"+p.password)) + "\r\n"
	}
	_, err = conn.Write([]byte(head + "\r\n"))
	require.NoError(p.t, err)
	return conn, bufio.NewReader(conn)
}

// counter is an origin that counts its connections.
type counter struct {
	net.Listener
	mu sync.Mutex
	n  int
}

func (c *counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
	}
	return conn, err
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func listen(t *testing.T, at string) *counter {
	t.Helper()
	l, err := net.Listen("tcp", at)
	require.NoError(t, err)
	c := &counter{Listener: l}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })}
	go func() { _ = server.Serve(c) }()
	t.Cleanup(func() { _ = server.Close() })
	return c
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
