package health

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

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
