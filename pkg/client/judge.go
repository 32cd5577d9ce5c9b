package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// Judge is the default of Options.Judge: 403 and 429 are bans, 407 is a proxy that does not take its
// own credentials, and anything else is well.
func Judge(resp *http.Response) Outcome {
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests:
		return Banned
	case http.StatusProxyAuthRequired:
		return Failed
	}
	return OK
}

// fault says what an error means for the proxy: nothing when the caller left, else that it did not
// answer in time or not well. A deadline of the caller's counts against the proxy.
func fault(ctx context.Context, err error) Outcome {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ""
	}
	var timeout net.Error
	if ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return Timeout
	}
	return Failed
}

// repeatable reports whether a request may be sent once more after err, nil for an answer that was a
// ban: its body can be had again, and it does nothing twice. What never got through to the proxy did
// nothing at all.
func repeatable(req *http.Request, err error) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return true
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// again returns the request for another try, with a body of its own. A RoundTripper must not change
// the one that it was given.
func again(req *http.Request, try int) (*http.Request, error) {
	if try == 1 || req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	copied := *req
	copied.Body = body
	return &copied, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// use is the body of a response: it ends one use of a lease when it is closed, and notices an answer
// that breaks off.
type use struct {
	io.ReadCloser
	broke func(error)
	leave func()
}

// Read implements io.Reader.
func (u *use) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.broke(err)
	}
	return n, err
}

// Close implements io.Closer.
func (u *use) Close() error {
	defer u.leave()
	return u.ReadCloser.Close()
}

// duplex is the body of a response that switched protocols.
type duplex struct {
	*use
	io.Writer
}
