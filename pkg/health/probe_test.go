package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

func TestProbeTellsWhatTheTargetAnswers(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	page := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	hijack := func(f func(net.Conn)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				f(c)
				_ = c.Close()
			}
		}
	}
	expect := func(code int32) func(*Request) { return func(r *Request) { r.Check.ExpectedStatus = code } }
	marker := func(text string) func(*Request) { return func(r *Request) { r.Check.BodyContains = text } }
	endless := func(c net.Conn) {
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nthe marker, then no end")
		for err == nil {
			_, err = io.WriteString(c, strings.Repeat("x", 4096))
		}
	}
	for name, row := range map[string]struct {
		target http.HandlerFunc
		change func(*Request)
		want   fleet.Outcome
	}{
		"the expected status is ok":             {status(204), expect(204), fleet.OutcomeOK},
		"any 2xx is ok where none is asked for": {page("hello"), nil, fleet.OutcomeOK},
		"an expected redirect is ok":            {status(302), expect(302), fleet.OutcomeOK},
		"an expected 403 is ok":                 {status(403), expect(403), fleet.OutcomeOK},
		"a page with the marker is ok":          {page("a marker here"), marker("marker"), fleet.OutcomeOK},
		"early hints before the answer are ok": {hijack(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
		}), expect(204), fleet.OutcomeOK},
		"a portal's page is status_mismatch":      {page("<html>please log in"), expect(204), fleet.OutcomeStatusMismatch},
		"500 is status_mismatch":                  {status(500), nil, fleet.OutcomeStatusMismatch},
		"407 of the target is status_mismatch":    {status(407), nil, fleet.OutcomeStatusMismatch},
		"101 is status_mismatch":                  {hijack(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n") }), nil, fleet.OutcomeStatusMismatch},
		"nonsense of the target: status_mismatch": {hijack(func(c net.Conn) { _, _ = io.WriteString(c, "nonsense\r\n\r\n") }), nil, fleet.OutcomeStatusMismatch},
		"an endless head is status_mismatch":      {hijack(endlessHead), nil, fleet.OutcomeStatusMismatch},
		"a page without the marker: body_mismatch": {
			page("something else"), marker("marker"), fleet.OutcomeBodyMismatch},
		"a redirect is redirect and not followed": {
			http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, nil, fleet.OutcomeRedirect},
		"403 of the target is blocked": {status(403), nil, fleet.OutcomeBlocked},
		"429 of the target is blocked": {status(429), nil, fleet.OutcomeBlocked},
		"a blocked answer is judged without its page": {hijack(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\n<html>")
			reset2(c)
		}), nil, fleet.OutcomeBlocked},
		"an endless page is judged by its beginning: ok":       {hijack(endless), marker("the marker"), fleet.OutcomeOK},
		"an endless page is judged by its beginning: mismatch": {hijack(endless), marker("never comes"), fleet.OutcomeBodyMismatch},
		"a marker beyond the part that is read: mismatch": {
			page(strings.Repeat("x", MaxBody) + "marker"), marker("marker"), fleet.OutcomeBodyMismatch},
		"a page that drips in slowly is timeout": {
			hijack(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\n\r\n") }), impatient, fleet.OutcomeTimeout},
		"a target that stays silent is timeout": {hijack(until), impatient, fleet.OutcomeTimeout},
		"a page cut short is reset": {hijack(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		}), nil, fleet.OutcomeReset},
		"a chunked page cut short is reset": {hijack(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
		}), nil, fleet.OutcomeReset},
		"a reset amid the page is reset": {hijack(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			reset2(c)
		}), nil, fleet.OutcomeReset},
	} {
		t.Run(name, func(t *testing.T) {
			leaveNothing(t)
			var asked atomic.Int32
			s := newScene(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				row.target(w, r)
			})
			change := row.change
			if change == nil {
				change = func(*Request) {}
			}
			got := s.through(t, tunnel(established), change)
			assert.Equal(t, row.want, got.Outcome, got.Detail)
			assert.EqualValues(t, 1, asked.Load(), "each probe asks once")
			assert.False(t, got.Certain)
		})
	}
}

func endlessHead(c net.Conn) {
	_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
	for err == nil {
		_, err = io.WriteString(c, strings.Repeat("X: y\r\n", 1000))
	}
}

// reset2 resets the TCP connection below TLS.
func reset2(c net.Conn) { reset(c.(*tls.Conn).NetConn()) }

func TestProbeTrustsOnlyTheTargetsOwnCertificate(t *testing.T) {
	spoil := map[string]func(t *testing.T, good issuer) tls.Certificate{
		"self-signed": func(t *testing.T, _ issuer) tls.Certificate {
			return newIssuer(t).issue(t, nil)
		},
		"expired": func(t *testing.T, good issuer) tls.Certificate {
			return good.issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
		},
		"not valid yet": func(t *testing.T, good issuer) tls.Certificate {
			return good.issue(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
		},
		"of a wrong host": func(t *testing.T, good issuer) tls.Certificate {
			return good.issue(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} })
		},
	}
	for name, certificate := range spoil {
		t.Run("a proxy that intercepts with a certificate "+name+" is tls", func(t *testing.T) {
			leaveNothing(t)
			s := newScene(t, nil)
			spy := serveTLS(t, certificate(t, s.issuer), noContent)
			got := s.through(t, divert(spy.Listener.Addr().String()))
			assert.Equal(t, fleet.OutcomeTLS, got.Outcome)
			assert.Contains(t, got.Detail, "certificate")
		})
		t.Run("insecureSkipVerify accepts a certificate "+name, func(t *testing.T) {
			leaveNothing(t)
			s := newScene(t, nil)
			spy := serveTLS(t, certificate(t, s.issuer), noContent)
			got := s.through(t, divert(spy.Listener.Addr().String()), func(r *Request) { r.Check.InsecureSkipVerify = true })
			assert.Equal(t, fleet.OutcomeOK, got.Outcome, got.Detail)
		})
	}
}

func TestProbeTellsWhyThereIsNoConnection(t *testing.T) {
	t.Run("nothing listens: refused, and certain", func(t *testing.T) {
		leaveNothing(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		host, port := split(t, l.Addr().String())
		require.NoError(t, l.Close())
		got := newScene(t, nil).through(t, until, func(r *Request) { r.Host, r.Port = host, port })
		assert.Equal(t, fleet.OutcomeRefused, got.Outcome)
		assert.True(t, got.Certain)
	})
	t.Run("the name does not exist: dns", func(t *testing.T) {
		leaveNothing(t)
		s := newScene(t, nil)
		s.prober.DialDNS = nameServer(t, true)
		got := s.through(t, until, func(r *Request) { r.Host = "gone.example." })
		assert.Equal(t, fleet.OutcomeDNS, got.Outcome)
		assert.Equal(t, "no such host", got.Detail)
	})
	t.Run("the name server is silent: dns", func(t *testing.T) {
		leaveNothing(t)
		s := newScene(t, nil)
		s.prober.DialDNS = nameServer(t, false)
		got := s.through(t, until, impatient, func(r *Request) { r.Host = "slow.example." })
		assert.Equal(t, fleet.OutcomeDNS, got.Outcome)
		assert.Equal(t, "the name could not be resolved", got.Detail)
	})
	t.Run("the caller gives up: inconclusive, at once", func(t *testing.T) {
		leaveNothing(t)
		ctx, cancel := context.WithCancel(t.Context())
		host, port := listen(t, "127.0.0.1:0", func(c net.Conn) { request(c); cancel(); until(c) })
		start := time.Now()
		got := newScene(t, nil).prober.Probe(ctx, Request{Host: host, Port: port, Timeout: time.Minute,
			Check: fleet.HealthCheck{URL: "https://127.0.0.1:1/"}})
		assert.Equal(t, fleet.OutcomeInconclusive, got.Outcome)
		assert.Less(t, time.Since(start), 10*time.Second)
	})
	t.Run("a url that is none: inconclusive", func(t *testing.T) {
		leaveNothing(t)
		got := newScene(t, nil).through(t, until, func(r *Request) { r.Check.URL = "ftp://x" })
		assert.Equal(t, fleet.OutcomeInconclusive, got.Outcome)
	})
}

// nameServer starts one that knows no name, or one that never answers, and returns how to reach it.
func nameServer(t *testing.T, answers bool) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if answers {
				query[2], query[3] = 0x84, 0x03 // an authoritative answer: no such name
				_, _ = server.WriteTo(query[:n], from)
			}
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}
}

func TestProbeSendsCredentialsOfAnyByteToTheProxyOnly(t *testing.T) {
	for _, password := range []string{"p:@/?#%é \"", "a\r\nX-Injected: 1", "\x00\xff\xfe", "", strings.Repeat("long", 100)} {
		for _, scheme := range []string{"https", "http"} {
			t.Run(fmt.Sprintf("%s %q", scheme, password), func(t *testing.T) {
				leaveNothing(t)
				var atTarget atomic.Value
				target := func(w http.ResponseWriter, r *http.Request) { atTarget.Store(r.Header); w.WriteHeader(204) }
				s := newScene(t, target)
				serve := tunnel
				if scheme == "http" {
					s.target = servePlain(t, target)
					serve = func(string) func(net.Conn) { return forward }
				}
				seen := make(chan http.Header, 1)
				got := s.through(t, func(c net.Conn) {
					var head recorder
					serve(established)(head.tap(c))
					seen <- head.header()
				}, func(r *Request) { r.Credentials = &Credentials{"crawler", password} })
				require.Equal(t, fleet.OutcomeOK, got.Outcome, got.Detail)
				want := "Basic " + base64.StdEncoding.EncodeToString([]byte("crawler:"+password))
				header := <-seen
				assert.Equal(t, want, header.Get("Proxy-Authorization"))
				assert.Empty(t, header.Get("X-Injected"))
				assert.Empty(t, atTarget.Load().(http.Header).Get("Proxy-Authorization"), "the target must not learn it")
			})
		}
	}
}

func TestProbeReachesIPv6EndpointsAndTargets(t *testing.T) {
	leaveNothing(t)
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6")
	}
	_ = l.Close()
	s := newScene(t, nil)
	_, port, err := net.SplitHostPort(s.target.Listener.Addr().String())
	require.NoError(t, err)
	_, six := listen(t, "[::1]:0", func(c net.Conn) { pipe(c, net.JoinHostPort("127.0.0.1", port)) })
	asked := make(chan string, 2)
	for _, host := range []string{"::1", "[::1]"} {
		_, proxyPort := listen(t, "[::1]:0", func(c net.Conn) {
			r := request(c)
			asked <- r.Host
			_, _ = io.WriteString(c, established)
			pipe(c, r.Host)
		})
		got := s.prober.Probe(t.Context(), Request{Host: host, Port: proxyPort, Timeout: 5 * time.Second,
			Check: fleet.HealthCheck{URL: fmt.Sprintf("https://[::1]:%d/", six)}})
		require.Equal(t, fleet.OutcomeOK, got.Outcome, got.Detail)
		assert.Equal(t, fmt.Sprintf("[::1]:%d", six), <-asked)
	}
}

func TestBytesBehindTheReplyBelongToTheTunnel(t *testing.T) {
	leaveNothing(t)
	host, port := listen(t, "127.0.0.1:0", reply(established+"hello from the target"))
	w, f := (&Prober{}).dial(t.Context(), host, fmt.Sprint(port))
	require.Nil(t, f)
	defer w.Close()
	require.Nil(t, w.connect("target.example:443", nil))
	got := make([]byte, 21)
	_, err := io.ReadFull(buffered{w.tcp, w.in}, got)
	require.NoError(t, err)
	assert.Equal(t, "hello from the target", string(got))
}

func TestProbeTellsAPlainProxyFromItsTarget(t *testing.T) {
	for name, row := range map[string]struct {
		proxy   func(net.Conn)
		change  func(*Request)
		want    fleet.Outcome
		certain bool
	}{
		"a page that came through is ok": {proxy: forward, want: fleet.OutcomeOK},
		"407 on plain GET is auth_failed, never alive": {
			proxy: reply("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"), want: fleet.OutcomeAuthFailed, certain: true},
		"407 is auth_failed even where it is asked for": {
			proxy:  reply("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"),
			change: func(r *Request) { r.Check.ExpectedStatus = 407 }, want: fleet.OutcomeAuthFailed, certain: true},
		"502 on plain GET is status_mismatch": {
			proxy: reply("HTTP/1.1 502 Bad Gateway\r\n\r\n"), want: fleet.OutcomeStatusMismatch},
		"another protocol is proxy_error": {
			proxy: reply("SSH-2.0-OpenSSH_9.9\r\n"), want: fleet.OutcomeProxyError},
		"an endless head is proxy_error": {
			proxy: func(c net.Conn) { request(c); endlessHead(c) }, want: fleet.OutcomeProxyError},
		"a silent accept is connect_timeout": {
			proxy: until, change: impatient, want: fleet.OutcomeConnectTimeout},
		"silence after the head is timeout": {
			proxy: reply("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"), change: impatient, want: fleet.OutcomeTimeout},
		"a reset is reset": {
			proxy: func(c net.Conn) { request(c); reset(c) }, want: fleet.OutcomeReset},
		"an injected body behind a 204 is body_mismatch": {
			proxy:  reply("HTTP/1.1 204 No Content\r\n\r\n<script src=//ads.example></script>"),
			change: func(r *Request) { r.Check.ExpectedStatus = 204 }, want: fleet.OutcomeBodyMismatch},
		"a 204 that announces a body is body_mismatch": {
			proxy:  reply("HTTP/1.1 204 No Content\r\nContent-Length: 35\r\n\r\n"),
			change: func(r *Request) { r.Check.ExpectedStatus = 204 }, want: fleet.OutcomeBodyMismatch},
		"bytes injected behind a page are body_mismatch": {
			proxy: reply("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage<script>"), want: fleet.OutcomeBodyMismatch},
		"an injected page is body_mismatch": {
			proxy:  reply("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbuy this!"),
			change: func(r *Request) { r.Check.BodyContains = "the marker" }, want: fleet.OutcomeBodyMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			leaveNothing(t)
			s := newScene(t, nil)
			s.target = servePlain(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
			change := row.change
			if change == nil {
				change = func(*Request) {}
			}
			got := s.through(t, row.proxy, change)
			assert.Equal(t, row.want, got.Outcome, got.Detail)
			assert.Equal(t, row.certain, got.Certain)
		})
	}
}

func TestPlainProbesAskInAbsoluteFormAndPastCaches(t *testing.T) {
	leaveNothing(t)
	s := newScene(t, nil)
	s.target = servePlain(t, noContent)
	seen := make(chan *http.Request, 1)
	s.through(t, func(c net.Conn) { seen <- request(c) }, func(r *Request) { r.Check.URL += "/path?q=1" })
	r := <-seen
	assert.Equal(t, s.target.URL+"/path?q=1", r.RequestURI)
	assert.Equal(t, "no-cache", r.Header.Get("Cache-Control"))
	assert.True(t, r.Close)
}

func TestDetailsNeverRepeatWhatTheOtherSideSent(t *testing.T) {
	const planted = "c2VjcmV0OnBsYW50ZWQ="
	for name, proxy := range map[string]func(net.Conn){
		"reason":   reply("HTTP/1.1 502 " + planted + "\r\n\r\n"),
		"header":   reply("HTTP/1.1 407 No\r\nProxy-Authenticate: " + planted + "\r\n\r\n"),
		"nonsense": reply(planted + "\r\n\r\n"),
		"tunnel":   reply(established + planted + planted),
	} {
		t.Run(name, func(t *testing.T) {
			leaveNothing(t)
			got := newScene(t, nil).through(t, proxy)
			assert.NotContains(t, got.Detail, planted)
			assert.NotEmpty(t, got.Detail)
			assert.LessOrEqual(t, len(got.Detail), 200)
		})
	}
}

func TestNoProbeOutlivesTheLongestTimeoutThatTheRulesAllow(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int32]time.Duration{1: time.Second, 60: time.Minute, 86400: time.Minute} {
		assert.Equal(t, want, Request{Check: fleet.HealthCheck{TimeoutSeconds: seconds}}.timeout())
	}
}
