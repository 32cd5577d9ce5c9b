package health

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestProbeTellsWhatTheProxyDoesToATunnel(t *testing.T) {
	for name, row := range map[string]struct {
		proxy   func(net.Conn)
		change  func(*Request)
		want    fleet.Outcome
		certain bool
	}{
		"a working tunnel is ok": {proxy: tunnel(established), want: fleet.OutcomeOK},
		"a reply of HTTP/1.0 is ok": {
			proxy: tunnel("HTTP/1.0 200 OK\r\n\r\n"), want: fleet.OutcomeOK},
		"a reply without a reason is ok": {
			proxy: tunnel("HTTP/1.1 200\r\n\r\n"), want: fleet.OutcomeOK},
		"any 2xx opens a tunnel": {
			proxy: tunnel("HTTP/1.1 202 Why not\r\n\r\n"), want: fleet.OutcomeOK},
		"a reply with extra headers is ok": {
			proxy: tunnel("HTTP/1.1 200 OK\r\nVia: 1.1 squid\r\nContent-Length: 1234\r\nTransfer-Encoding: chunked\r\nodd line\r\n\r\n"),
			want:  fleet.OutcomeOK},
		"a reply with a 1xx first is ok": {
			proxy: tunnel("HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + established), want: fleet.OutcomeOK},
		"a reply in pieces is ok": {
			proxy: func(c net.Conn) {
				target := request(c).Host
				for _, b := range []byte("HTTP/1.1 100 Continue\r\n\r\n" + established) {
					_, _ = c.Write([]byte{b})
				}
				pipe(c, target)
			}, want: fleet.OutcomeOK},
		"407 on CONNECT is auth_failed, never alive": {
			proxy: reply("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"),
			want:  fleet.OutcomeAuthFailed, certain: true},
		"407 on CONNECT is auth_failed when the proxy hangs up at once": {
			proxy: func(c net.Conn) { request(c); _, _ = io.WriteString(c, "HTTP/1.1 407 No\r\n\r\n") },
			want:  fleet.OutcomeAuthFailed, certain: true},
		"a 502 whose reason contains 200 is proxy_error": {
			proxy: reply("HTTP/1.1 502 200 OK\r\nX: HTTP/1.1 200 OK\r\n\r\n"), want: fleet.OutcomeProxyError},
		"403 on CONNECT is the proxy's own, proxy_error": {
			proxy: reply("HTTP/1.1 403 Forbidden\r\n\r\n"), want: fleet.OutcomeProxyError},
		"429 on CONNECT is the proxy's own, proxy_error": {
			proxy: reply("HTTP/1.1 429 Too Many Requests\r\n\r\n"), want: fleet.OutcomeProxyError},
		"a redirect on CONNECT is proxy_error": {
			proxy: reply("HTTP/1.1 302 Found\r\nLocation: http://portal.example/\r\n\r\n"), want: fleet.OutcomeProxyError},
		"101 on CONNECT is proxy_error": {
			proxy: reply("HTTP/1.1 101 Switching Protocols\r\n\r\n"), want: fleet.OutcomeProxyError},
		"another protocol on CONNECT is proxy_error": {
			proxy: reply("SSH-2.0-OpenSSH_9.9\r\n"), want: fleet.OutcomeProxyError},
		"a status of four digits is proxy_error": {
			proxy: reply("HTTP/1.1 2000 OK\r\n\r\n"), want: fleet.OutcomeProxyError},
		"an endless reply to CONNECT is proxy_error": {
			proxy: func(c net.Conn) {
				request(c)
				_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				for err == nil {
					_, err = io.WriteString(c, strings.Repeat("X: y\r\n", 1000))
				}
			}, want: fleet.OutcomeProxyError},
		"endless interim replies to CONNECT are proxy_error": {
			proxy: func(c net.Conn) {
				request(c)
				var err error
				for err == nil {
					_, err = io.WriteString(c, strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100))
				}
			}, want: fleet.OutcomeProxyError},
		"a page glued behind the head is proxy_error": {
			proxy: tunnel(established + "<html>Connection established</html>"), want: fleet.OutcomeProxyError},
		"a page in the tunnel is proxy_error": {
			proxy: func(c net.Conn) {
				request(c)
				_, _ = io.WriteString(c, established)
				_, _ = c.Read(make([]byte, 1))
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				until(c)
			}, want: fleet.OutcomeProxyError},
		"a silent accept is connect_timeout": {
			proxy: until, change: impatient, want: fleet.OutcomeConnectTimeout},
		"half a reply to CONNECT is connect_timeout": {
			proxy: reply("HTTP/1.1 200 Connection esta"), change: impatient, want: fleet.OutcomeConnectTimeout},
		"a reply that drips in slowly is connect_timeout": {
			proxy: func(c net.Conn) { request(c); drip(c, "HTTP/1.1 200 OK\r\nX: ") }, change: impatient, want: fleet.OutcomeConnectTimeout},
		"silence in the tunnel is timeout": {
			proxy: reply(established), change: impatient, want: fleet.OutcomeTimeout},
		"a reset instead of a reply is reset": {
			proxy: func(c net.Conn) { request(c); reset(c) }, want: fleet.OutcomeReset},
		"a close instead of a reply is reset": {
			proxy: func(c net.Conn) { request(c) }, want: fleet.OutcomeReset},
		"a close amid the reply is reset": {
			proxy: func(c net.Conn) { request(c); _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX") }, want: fleet.OutcomeReset},
		"a reset of the tunnel is reset": {
			proxy: func(c net.Conn) {
				request(c)
				_, _ = io.WriteString(c, established)
				_, _ = c.Read(make([]byte, 10))
				reset(c)
			}, want: fleet.OutcomeReset},
		"a close of the tunnel is reset": {
			proxy: func(c net.Conn) { request(c); _, _ = io.WriteString(c, established) }, want: fleet.OutcomeReset},
		"a TLS alert in the tunnel is tls": {
			proxy: func(c net.Conn) {
				request(c)
				_, _ = io.WriteString(c, established)
				_, _ = c.Read(make([]byte, 1))
				_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, 40}) // handshake_failure
				until(c)
			}, want: fleet.OutcomeTLS},
	} {
		t.Run(name, func(t *testing.T) {
			leaveNothing(t)
			s := newScene(t, nil)
			change := row.change
			if change == nil {
				change = func(*Request) {}
			}
			got := s.through(t, row.proxy, change)
			assert.Equal(t, row.want, got.Outcome, got.Detail)
			assert.Equal(t, row.certain, got.Certain)
			assert.Equal(t, row.want == fleet.OutcomeOK, got.Detail == "", got.Detail)
			assert.Positive(t, got.Latency)
		})
	}
}

// drip writes head and then a byte now and then, until the other side closes.
func drip(c net.Conn, head string) {
	_, err := io.WriteString(c, head)
	tick := time.NewTicker(patience / 20)
	defer tick.Stop()
	for ; err == nil; <-tick.C {
		_, err = io.WriteString(c, "x")
	}
}
