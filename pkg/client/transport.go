package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options say how a Transport leases. The zero Options are good for most crawls.
type Options struct {
	// Request is what each lease is asked for. Target is the host that is fetched, whatever it says,
	// and proxies that failed a request are added to Exclude. RequestID must be empty.
	Request Request
	// Base is copied for each lease: TLS settings, timeouts and the like. nil: http.DefaultTransport.
	Base *http.Transport
	// Attempts is how many proxies one request is tried on, when it may be sent twice: GET and the
	// like, or an Idempotency-Key. 0: 3.
	Attempts int
	// Uses is after how many requests a lease is exchanged; 1 is a proxy per request, 0 no limit.
	Uses int
	// Idle is after what time without a request a lease is given back. 0: 30 s.
	Idle time.Duration
	// Judge says what an answer means; all but OK exchanges the lease. nil: the function Judge.
	Judge func(*http.Response) Outcome
}

const (
	defaultAttempts = 3
	defaultIdle     = 30 * time.Second
	releaseTimeout  = 15 * time.Second
)

// Transport is an http.RoundTripper that sends each request through a leased proxy. Requests to one
// host share a lease. When a proxy fails, or a target bans it, the lease is given back with that
// report, and a request that may be sent twice goes through another proxy. It is safe for concurrent
// use, and must be closed. Close response bodies: each keeps its lease.
type Transport struct {
	client  *Client
	options Options
	flight  singleflight.Group
	busy    sync.WaitGroup // acquires and releases under way

	mu     sync.Mutex
	hosts  map[string]*shared // what new requests use
	all    map[*shared]bool
	closed bool
}

// NewTransport returns a Transport.
func NewTransport(c *Client, o Options) *Transport {
	if o.Base == nil {
		o.Base = http.DefaultTransport.(*http.Transport)
	}
	if o.Attempts <= 0 {
		o.Attempts = defaultAttempts
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Judge == nil {
		o.Judge = Judge
	}
	return &Transport{client: c, options: o, hosts: map[string]*shared{}, all: map[*shared]bool{}}
}

// ErrClosed is what requests get after Close.
var ErrClosed = errors.New("the transport is closed")

// RoundTrip implements http.RoundTripper. When no other proxy is to be had, it returns what the last
// one gave; when there was none at all, a *Refusal.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	host := strings.ToLower(req.URL.Hostname())
	var resp *http.Response // of the try before
	var err error
	var tried []string
	for try := 1; ; try++ {
		s, refused := t.borrow(req.Context(), host, tried)
		if refused != nil && try == 1 {
			closeBody(req)
			return nil, refused
		}
		if refused != nil {
			return resp, err
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		var outcome Outcome
		resp, outcome, err = t.send(s, req, try)
		if outcome == OK || try == t.options.Attempts || req.Context().Err() != nil || !repeatable(req, err) {
			return resp, err
		}
		tried = append(tried, s.proxy)
	}
}

// send sends a request through a lease, and says what came of it.
func (t *Transport) send(s *shared, req *http.Request, try int) (*http.Response, Outcome, error) {
	host := strings.ToLower(req.URL.Hostname())
	sent, err := again(req, try)
	if err != nil {
		t.leave(s)
		return nil, OK, err
	}
	resp, err := s.transport.RoundTrip(sent)
	if err != nil {
		outcome := fault(req.Context(), err)
		t.retire(s, outcome, host)
		t.leave(s)
		return nil, outcome, err
	}
	outcome := t.options.Judge(resp)
	if outcome != OK {
		t.retire(s, outcome, host)
	}
	u := &use{
		ReadCloser: resp.Body,
		broke:      func(err error) { t.retire(s, fault(req.Context(), err), host) },
		leave:      sync.OnceFunc(func() { t.leave(s) }),
	}
	if w, ok := resp.Body.(io.Writer); ok {
		resp.Body = duplex{u, w}
	} else {
		resp.Body = u
	}
	return resp, outcome, nil
}

// CloseIdleConnections ends connections that nobody uses; leases stay.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.all {
		s.transport.CloseIdleConnections()
	}
}

// Close gives all leases back and waits for that until ctx ends. Requests that are under way lose
// their proxies.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	for s := range t.all {
		s.users = 0
		t.retireLocked(s, OK, "")
	}
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// borrow returns a lease for one use: one that others use for the same host, else a new one. Of many
// requests that begin at once one takes it.
func (t *Transport) borrow(ctx context.Context, host string, exclude []string) (*shared, error) {
	for {
		s, err := t.enter(host, exclude)
		if s != nil || err != nil {
			return s, err
		}
		if t.options.Uses == 1 {
			return t.take(ctx, host, exclude, true)
		}
		took := t.flight.DoChan(host+"\x00"+strings.Join(exclude, "\x00"), func() (any, error) {
			// It is for others, too: it does not end with the one who began it.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tries*callTimeout)
			defer cancel()
			return t.take(ctx, host, exclude, false)
		})
		select {
		case r := <-took:
			if r.Err != nil {
				return nil, r.Err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// enter returns the host's lease for one use, or nothing.
func (t *Transport) enter(host string, exclude []string) (*shared, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	s := t.hosts[host]
	if s == nil || slices.Contains(exclude, s.proxy) {
		return nil, nil
	}
	if s.over() {
		t.retireLocked(s, OK, "")
		return nil, nil
	}
	t.use(s)
	return s, nil
}
