package health

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// MaxBody is how much of a page is read. A longer page is judged by its first MaxBody bytes.
const MaxBody = 64 << 10

// answer is what came back.
type answer struct {
	code   int
	header http.Header
	body   []byte
	extra  bool // there are bytes where the answer should have ended
	proxy  bool // the proxy itself may have written it: it was asked in the open
}

// read reads the final answer to req, with its page where the status is one of those wanted. The page
// is never closed, which would drain it: the connection is dropped anyway.
func (w *wire) read(req *http.Request, absolute bool, wanted func(code int) bool) (answer, *fault) {
	limit := &io.LimitedReader{R: w.in, N: maxHead}
	in := bufio.NewReader(limit)
	resp, f := w.readHead(in, limit, req)
	if f != nil {
		return answer{}, f
	}
	a := answer{code: resp.StatusCode, header: resp.Header, proxy: absolute}
	if !wanted(a.code) {
		return a, nil
	}
	limit.N = 4 * MaxBody // leaves room for chunk sizes
	var err error
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	switch {
	case len(a.body) == MaxBody:
		return a, nil
	case err != nil:
		return answer{}, w.fault(err)
	}
	rest, _ := in.Peek(in.Buffered())
	a.extra = len(bytes.TrimSpace(rest)) > 0 || claimsBody(resp)
	return a, nil
}

func (w *wire) readHead(in *bufio.Reader, limit *io.LimitedReader, req *http.Request) (*http.Response, *fault) {
	if _, err := in.Peek(1); err != nil {
		return nil, w.fault(err)
	}
	w.heard = true
	for {
		resp, err := http.ReadResponse(in, req)
		switch {
		case err != nil && limit.N <= 0:
			return nil, w.nonsense()
		case err != nil:
			return nil, w.fault(err)
		case resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols:
			return resp, nil
		}
	}
}

// claimsBody reports a body announced where none may be, as on a 204 that was tampered with.
func claimsBody(r *http.Response) bool {
	if r.StatusCode != http.StatusNoContent {
		return false
	}
	length := r.Header.Get("Content-Length")
	return (length != "" && length != "0") || len(r.TransferEncoding) > 0
}

// result judges the answer by what the check expects.
func (a answer) result(check fleet.HealthCheck) Result {
	fail := func(o fleet.Outcome, format string, args ...any) Result {
		return Result{Outcome: o, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.proxy && a.code == http.StatusProxyAuthRequired:
		return unauthorized().result()
	case expected(a.code, check) && !bytes.Contains(a.body, []byte(check.BodyContains)):
		return fail(fleet.OutcomeBodyMismatch, "the page lacks the marker")
	case expected(a.code, check) && a.extra:
		return fail(fleet.OutcomeBodyMismatch, "there is more than the target's answer")
	case expected(a.code, check):
		return Result{Outcome: fleet.OutcomeOK, ExitAddress: a.exitAddress(check)}
	case a.code == http.StatusForbidden || a.code == http.StatusTooManyRequests:
		return fail(fleet.OutcomeBlocked, "the target answered %d", a.code)
	case a.code >= 300 && a.code < 400:
		return fail(fleet.OutcomeRedirect, "the target answered %d", a.code)
	}
	return fail(fleet.OutcomeStatusMismatch, "the target answered %d", a.code)
}

func expected(code int, check fleet.HealthCheck) bool {
	if check.ExpectedStatus == 0 {
		return code >= 200 && code < 300
	}
	return code == int(check.ExpectedStatus)
}
