package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"
)

// replayLimit is how much of a request's body is kept for another try, in bytes; a longer one gets
// one try.
const replayLimit = 1 << 20

// hopHeaders end at a proxy (RFC 9110, section 7.6.1).
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// forward serves a plain http:// request through a leased proxy. The status is visible here, so bans
// are reported.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	body, replayable, err := keepBody(r.Body)
	if err != nil {
		http.Error(w, "the request's body broke off", http.StatusBadRequest)
		return
	}
	target := r.URL.Hostname()
	var broken error
	err = g.attempt(r, target, func(h *held) (Outcome, bool, error) {
		sent := false
		resp, err := g.roundTrip(r, h, body(), &sent)
		if err != nil {
			again := replayable && r.Context().Err() == nil && (!sent || idempotent(r.Method))
			return failure(err), again, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusProxyAuthRequired {
			return Failed, replayable, errors.New("the proxy refused its credentials: 407")
		}
		if broken = copyAnswer(w, resp); broken != nil && r.Context().Err() == nil {
			return failure(broken), false, nil
		}
		if g.banned(resp.StatusCode) {
			return Banned, false, nil
		}
		return OK, false, nil
	})
	if broken != nil {
		panic(http.ErrAbortHandler) // so that the crawler does not take half an answer for a whole one
	}
	if err != nil {
		refuse(w, err)
	}
}

// idempotent methods may reach the target twice (RFC 9110, section 9.2.2).
func idempotent(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete}, method)
}

// keepBody reads a short body whole, so that it can be sent again.
func keepBody(body io.ReadCloser) (again func() io.Reader, replayable bool, err error) {
	head, err := io.ReadAll(io.LimitReader(body, replayLimit+1))
	if err != nil {
		return nil, false, err
	}
	if len(head) > replayLimit {
		return func() io.Reader { return io.MultiReader(bytes.NewReader(head), body) }, false, nil
	}
	return func() io.Reader {
		if len(head) == 0 {
			return http.NoBody
		}
		return bytes.NewReader(head)
	}, true, nil
}

// roundTrip asks through a lease; sent tells whether any of the request may have got through.
func (g *Gateway) roundTrip(r *http.Request, h *held, body io.Reader, sent *bool) (*http.Response, error) {
	u, err := url.Parse(h.lease.URL)
	if err != nil {
		return nil, errors.New("the lease's URL cannot be read")
	}
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { *sent = true }})
	out, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), body)
	if err != nil {
		return nil, err
	}
	if out.ContentLength == 0 {
		out.ContentLength = r.ContentLength
	}
	out.Header = r.Header.Clone()
	dropHopHeaders(out.Header)
	// A transport of its own: connections of one lease must not serve the next one.
	t := &http.Transport{
		Proxy: http.ProxyURL(u), DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: 2 * time.Minute,
		DialContext: (&net.Dialer{Timeout: g.config.DialTimeout}).DialContext,
	}
	return t.RoundTrip(out)
}

// dropHopHeaders removes what is meant for the next hop only, also what Connection names.
func dropHopHeaders(h http.Header) {
	for _, value := range h.Values("Connection") {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}

// copyAnswer returns an error when the answer broke off.
func copyAnswer(w http.ResponseWriter, resp *http.Response) error {
	dropHopHeaders(resp.Header)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, err := io.Copy(flusher{w}, resp.Body)
	return err
}

// flusher passes each piece on as it comes, for answers that trickle.
type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		_ = http.NewResponseController(f.w).Flush()
	}
	return n, err
}
