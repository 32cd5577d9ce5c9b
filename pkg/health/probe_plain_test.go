package health

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

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
