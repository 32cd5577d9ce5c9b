package mock

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proxied is a running instance's port.
func proxied(t *testing.T, basicAuth string) (*Cloud, int32) {
	t.Helper()
	c, _ := listening(t, Settings{BasicAuth: basicAuth})
	port := reserve(t)
	create(t, c, request("a", port))
	return c, port
}

// dial opens a connection to the proxy that gives up after a while.
func dial(t *testing.T, port int32) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	return conn.(*net.TCPConn)
}

// ask sends a request as it is written, and returns the answer to it.
func ask(t *testing.T, conn net.Conn, text string) (*http.Response, *bufio.Reader) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	method, _, _ := strings.Cut(text, " ")
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp, r
}

func basic(credentials string) string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(credentials)) + "\r\n"
}

// echo is a target that says everything back, and then ": bye" when it was told that this is all.
func echo(t *testing.T) string {
	t.Helper()
	socket, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	go func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
				_, _ = io.WriteString(conn, ": bye")
			}()
		}
	}()
	return socket.Addr().String()
}

func TestCredentialsAreAskedFor(t *testing.T) {
	t.Parallel()
	const password = "crawler:p@:/?#% é\x00\xff"
	_, port := proxied(t, password)
	target := echo(t)
	for _, row := range []struct {
		promise, header string
		want            int
	}{
		{"none", "", 407},
		{"another password", basic("crawler:p"), 407},
		{"another user", basic("x" + password), 407},
		{"empty ones", basic(""), 407},
		{"no base64", "Proxy-Authorization: Basic !\r\n", 407},
		{"another scheme", strings.Replace(basic(password), "Basic", "Bearer", 1), 407},
		{"for the origin, not the proxy", strings.TrimPrefix(basic(password), "Proxy-"), 407},
		{"the right ones, byte for byte", basic(password), 200},
		{"the scheme in lower case", strings.Replace(basic(password), "Basic", "basic", 1), 200},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			resp, _ := ask(t, dial(t, port), "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n"+row.header+"\r\n")
			assert.Equal(t, row.want, resp.StatusCode)
			if row.want == 407 {
				assert.Equal(t, `Basic realm="mock proxy"`, resp.Header.Get("Proxy-Authenticate"))
			}
			plain, _ := ask(t, dial(t, port), "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"+row.header+"\r\n")
			assert.Equal(t, row.want == 407, plain.StatusCode == 407, "plain requests are asked as well: %d", plain.StatusCode)
		})
	}
}

func TestOnASharedPortTheCredentialsOfAnyInstanceDo(t *testing.T) {
	t.Parallel()
	_, port := proxied(t, "a:1")
	second, _ := listening(t, Settings{BasicAuth: "b:2"})
	b := create(t, second, request("b", port))
	target := echo(t)
	status := func(header string) int {
		resp, _ := ask(t, dial(t, port), "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n"+header+"\r\n")
		return resp.StatusCode
	}
	assert.Equal(t, []int{200, 200, 407}, []int{status(basic("a:1")), status(basic("b:2")), status("")})
	require.NoError(t, second.Delete(t.Context(), b.Ref()))
	assert.Equal(t, []int{200, 407}, []int{status(basic("a:1")), status(basic("b:2"))})
	open, _ := listening(t, Settings{})
	create(t, open, request("c", port))
	assert.Equal(t, []int{200, 200}, []int{status(""), status(basic("who:ever"))})
}

func TestATunnelIsClosedByHalves(t *testing.T) {
	t.Parallel()
	_, port := proxied(t, "")
	target := echo(t)
	conn := dial(t, port)
	_, r := ask(t, conn, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
	_, err := io.WriteString(conn, "hello")
	require.NoError(t, err)
	hello := make([]byte, 5)
	_, err = io.ReadFull(r, hello)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(hello))
	require.NoError(t, conn.CloseWrite())
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, ": bye", string(rest), "the target answers after the client's last word")
}

func TestWhatComesWithTheConnectIsPassedOn(t *testing.T) {
	t.Parallel()
	_, port := proxied(t, "")
	target := echo(t)
	conn := dial(t, port)
	_, r := ask(t, conn, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\nearly")
	require.NoError(t, conn.CloseWrite())
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "early: bye", string(all))
}

func TestPlainRequestsArePassedOnAsTheyAre(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Proxy-Authorization"))
		assert.Empty(t, r.Header.Get("X-Forwarded-For"), "a crawl proxy does not tell")
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI+" "+r.Host)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(body)
	}))
	t.Cleanup(origin.Close)
	_, port := proxied(t, "u:p")
	client := proxyClient(origin, port, url.UserPassword("u", "p"))
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin.URL+"/a%2Fb?x=1;y=%zz", strings.NewReader("body"))
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusTeapot, resp.StatusCode)
	assert.Equal(t, "POST /a%2Fb?x=1;y=%zz "+origin.Listener.Addr().String(), resp.Header.Get("X-Seen"))
	assert.Equal(t, "body", string(body))
}

func TestWhatIsNoProxyRequestIsRefused(t *testing.T) {
	t.Parallel()
	_, port := proxied(t, "")
	for _, row := range []struct {
		promise, text string
		want          int
	}{
		{"a page of the proxy itself", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"another scheme", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"no HTTP", "hello\r\n\r\n", 400},
		{"connect to a closed port", "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 502},
		{"connect without a port", "CONNECT localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", 502},
		{"plain to a closed port", "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 502},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			resp, _ := ask(t, dial(t, port), row.text)
			assert.Equal(t, row.want, resp.StatusCode)
		})
	}
}

func TestTheEndOfAVMCutsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	c, _ := listening(t, Settings{})
	req := request("a", freePort(t))
	create(t, c, req)
	target := echo(t)
	tunnel, idle, waiting := dial(t, req.Port), dial(t, req.Port), dial(t, req.Port)
	_, r := ask(t, tunnel, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
	_, err := io.WriteString(waiting, "GET "+slow.URL+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-asked

	require.NoError(t, c.Delete(t.Context(), req.Ref()))
	for name, rest := range map[string]io.Reader{"tunnel": r, "idle": idle, "waiting": waiting} {
		_, err := io.ReadAll(rest)
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "%s is still open", name)
	}
	assert.False(t, taken(req.Port))
}
