package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Held is a lease that is renewed until it is given back. It is safe for concurrent use.
type Held struct {
	client *Client
	ttl    time.Duration
	stop   context.CancelFunc
	lost   chan struct{}
	ended  chan struct{} // the renewing has ended

	mu    sync.Mutex
	lease Lease
	err   error
}

// Hold takes a lease and renews it until Release is called or ctx ends; without either it is kept for
// ever. When ctx ends and nobody calls Release the lease ends by itself, at its ExpireTime.
func (c *Client) Hold(ctx context.Context, r Request) (*Held, error) {
	sent := time.Now()
	l, err := c.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.keep(ctx, l, sent, time.Duration(r.TTLSeconds)*time.Second), nil
}

// keep renews a lease that was asked for at sent. ctx ends the renewing.
func (c *Client) keep(ctx context.Context, l Lease, sent time.Time, ttl time.Duration) *Held {
	ctx, stop := context.WithCancel(ctx)
	h := &Held{client: c, ttl: ttl, stop: stop, lease: l, lost: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		if err := h.renew(ctx, sent); err != nil {
			h.mu.Lock()
			h.err = err
			h.mu.Unlock()
			close(h.lost)
		}
	}()
	return h
}

// Lease returns the lease as it was when it was last renewed.
func (h *Held) Lease() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// Lost is closed when the lease has ended and nobody gave it back: its proxy must not be used any
// longer.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// Err says why the lease was lost; nil while it is not.
func (h *Held) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Release stops the renewing and gives the lease back. It may be called more than once.
func (h *Held) Release(ctx context.Context, o Outcome, target string) error {
	h.stop()
	<-h.ended
	return h.client.Release(ctx, h.Lease().ID, o, target)
}

// The times of renewing. A lease is renewed when half of it is over, so that there is room for many
// tries; one with less than lastMoment left is not worth a call.
const (
	lastMoment = time.Second
	retryPause = time.Second
)

// renew renews until ctx ends, and returns why the lease was lost, nil when it was not.
func (h *Held) renew(ctx context.Context, sent time.Time) error {
	end := sent.Add(h.Lease().Left)
	var last error
	for pause := half(end); ; {
		if left := time.Until(end); left <= lastMoment {
			return h.runOut(ctx, left, last)
		}
		if sleep(ctx, max(pause, lastMoment)) != nil {
			return nil
		}
		begun := time.Now()
		l, err := h.tryRenew(ctx, end)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			h.set(l)
			end, last = begun.Add(l.Left), nil
			pause = half(end)
		case Ended(err):
			return err
		default:
			last, pause = err, retryPause
		}
	}
}

// half is half the time until end, or a little less: leases that were taken at once need not be renewed
// at once.
func half(end time.Time) time.Duration {
	return time.Duration(float64(time.Until(end)) * (0.5 - rand.Float64()/10))
}

// tryRenew tries no longer than the lease lasts.
func (h *Held) tryRenew(ctx context.Context, end time.Time) (Lease, error) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	return h.client.Renew(ctx, h.Lease().ID, h.ttl)
}

// set keeps the endpoint of old where the new lease has none: connections that are open go on.
func (h *Held) set(l Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.Endpoint.URL == "" {
		l.Endpoint = h.lease.Endpoint
	}
	h.lease = l
}

// runOut waits for the end of a lease that cannot be renewed any more.
func (h *Held) runOut(ctx context.Context, left time.Duration, last error) error {
	if sleep(ctx, left) != nil {
		return nil
	}
	if last == nil {
		last = errors.New("its proxy is gone")
	}
	return fmt.Errorf("the lease expired: %w", last)
}
