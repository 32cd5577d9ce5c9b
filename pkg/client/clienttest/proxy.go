package clienttest

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy is a real HTTP proxy on loopback: tunnels and plain requests, for who has User and Password.
// Plain requests leave it with its name in the header X-Proxy.
type Proxy struct {
	Used    atomic.Int64 // requests with credentials
	Refused atomic.Int64 // requests without

	name string
	port int32
	fail atomic.Pointer[http.HandlerFunc]
}

func newProxy(t *testing.T, name string) *Proxy {
	t.Helper()
	p := &Proxy{name: name}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	require.NoError(t, err)
	p.port = int32(n)
	return p
}

// FailWith has f serve instead, for who has the credentials.
func (p *Proxy) FailWith(f http.HandlerFunc) { p.fail.Store(&f) }

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(User+":"+Password))
	if r.Header.Get("Proxy-Authorization") != want {
		p.Refused.Add(1)
		http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		return
	}
	p.Used.Add(1)
	if f := p.fail.Load(); f != nil {
		(*f)(w, r)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Header.Del("Proxy-Authorization")
	out.Header.Set("X-Proxy", p.name)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	w.(http.Flusher).Flush()
	_, _ = io.Copy(w, resp.Body)
}

func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer target.Close()
	client, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, target}, {target, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// Slam ends a connection without an answer.
func Slam(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// rereadable returns the body of a request and leaves it to be read again.
func rereadable(r *http.Request) string {
	data, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(data)))
	return string(data)
}
