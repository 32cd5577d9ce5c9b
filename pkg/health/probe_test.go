package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

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
