package health

import (
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
