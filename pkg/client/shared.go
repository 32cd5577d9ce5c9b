package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// shared is a lease that the requests to one host use. Its fields belong to the Transport's lock.
type shared struct {
	held      *Held
	proxy     string
	host      string
	transport *http.Transport
	idle      *time.Timer

	users   int
	uses    int // so far
	retired bool
	gone    bool // given back, or about to be
	outcome Outcome
	target  string
}

// over reports whether no new request should use it: its proxy is on its way out, or it was lost.
func (s *shared) over() bool { return s.held.Err() != nil || s.held.Lease().Draining }

// take takes a lease and makes it the one of its host. For one use alone it is used at once, and by
// nobody else.
func (t *Transport) take(ctx context.Context, host string, exclude []string, alone bool) (*shared, error) {
	if !t.begin() {
		return nil, ErrClosed
	}
	defer t.busy.Done()
	r := t.options.Request
	r.Target, r.Exclude = host, append(slices.Clone(r.Exclude), exclude...)
	sent := time.Now()
	l, err := t.client.Acquire(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("lease a proxy for %s: %w", host, err)
	}
	proxy, err := url.Parse(l.Endpoint.URL)
	if err != nil {
		return nil, fmt.Errorf("lease a proxy for %s: the URL of proxy %s cannot be read", host, l.Proxy.Name)
	}
	s := &shared{proxy: l.Proxy.Name, host: host, transport: t.options.Base.Clone(), outcome: OK}
	s.transport.Proxy = http.ProxyURL(proxy)
	s.held = t.client.keep(context.WithoutCancel(ctx), l, sent, time.Duration(r.TTLSeconds)*time.Second)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[s] = true
	s.idle = time.AfterFunc(t.options.Idle, func() { t.unused(s) })
	switch {
	case t.closed:
		t.retireLocked(s, OK, "")
		return nil, ErrClosed
	case alone:
		t.use(s)
	case t.hosts[host] == nil || slices.Contains(exclude, t.hosts[host].proxy):
		t.hosts[host] = s
	default: // others were faster: theirs will do
		t.retireLocked(s, OK, "")
	}
	return s, nil
}

// begin notes a piece of work that Close waits for; false after Close.
func (t *Transport) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.busy.Add(1)
	return true
}

// use needs the lock, as all that follows with "Locked" in its name does.
func (t *Transport) use(s *shared) {
	s.users++
	s.uses++
	s.idle.Stop()
	if t.options.Uses > 0 && s.uses >= t.options.Uses {
		t.retireLocked(s, OK, "")
	}
}

// leave ends one use.
func (t *Transport) leave(s *shared) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.users > 0 { // after Close nobody counts
		s.users--
	}
	if s.users == 0 && !s.retired {
		s.idle.Reset(t.options.Idle)
	}
	t.giveBackLocked(s)
}

// unused retires a lease that nobody has used for a while.
func (t *Transport) unused(s *shared) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.users == 0 {
		t.retireLocked(s, OK, "")
	}
}

// retire keeps new requests from a lease. The first fault is what is reported. Without an outcome
// nothing happens: the caller left.
func (t *Transport) retire(s *shared, o Outcome, target string) {
	if o == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retireLocked(s, o, target)
}

func (t *Transport) retireLocked(s *shared, o Outcome, target string) {
	s.retired = true
	if s.outcome == OK {
		s.outcome, s.target = o, target
	}
	if t.hosts[s.host] == s {
		delete(t.hosts, s.host)
	}
	t.giveBackLocked(s)
}

// giveBackLocked gives a retired lease back when its last user has left.
func (t *Transport) giveBackLocked(s *shared) {
	if !s.retired || s.users > 0 || s.gone {
		return
	}
	s.gone = true
	delete(t.all, s)
	s.idle.Stop()
	outcome, target := s.outcome, s.target
	t.busy.Go(func() {
		s.transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		_ = s.held.Release(ctx, outcome, target) // failing that it ends by itself
	})
}
