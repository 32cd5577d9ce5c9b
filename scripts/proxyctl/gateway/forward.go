package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
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
	err = g.attempt(r, target, func(h *held) (Outcome, bool, error) {
		resp, err := g.roundTrip(r, h, body())
		if err != nil {
			return failure(err), replayable && r.Context().Err() == nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusProxyAuthRequired {
			return Failed, replayable, errors.New("the proxy refused its credentials: 407")
		}
		copyAnswer(w, resp)
		if g.banned(resp.StatusCode) {
			return Banned, false, nil
		}
		return OK, false, nil
	})
	if err != nil {
		refuse(w, err)
	}
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

func (g *Gateway) roundTrip(r *http.Request, h *held, body io.Reader) (*http.Response, error) {
	u, err := url.Parse(h.lease.URL)
	if err != nil {
		return nil, errors.New("the lease's URL cannot be read")
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), body)
	if err != nil {
		return nil, err
	}
	if out.ContentLength == 0 {
		out.ContentLength = r.ContentLength
	}
	out.Header = r.Header.Clone()
	for _, name := range hopHeaders {
		out.Header.Del(name)
	}
	// A transport of its own: connections of one lease must not serve the next one.
	t := &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: 2 * time.Minute}
	return t.RoundTrip(out)
}

func copyAnswer(w http.ResponseWriter, resp *http.Response) {
	for _, name := range hopHeaders {
		resp.Header.Del(name)
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(flusher{w}, resp.Body)
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
