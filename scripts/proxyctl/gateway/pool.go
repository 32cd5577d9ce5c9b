package gateway

import (
	"context"
	"sync"
	"time"
)

// held is a lease that requests share.
type held struct {
	lease   Lease
	key     string // "" for a lease of one request
	since   time.Time
	used    time.Time // when its last user left
	users   int
	retired bool // takes no new users
	target  string
	outcome Outcome
}

// pool keeps leases while they are shared, renews them, and gives each back once.
type pool struct {
	leaser   Leaser
	rotation Rotation
	now      func() time.Time
	warn     func(msg string, args ...any)

	mu    sync.Mutex
	held  map[*held]bool
	keys  map[string]*held
	turns map[string]chan struct{} // by key: somebody takes a lease; closed when done
	busy  sync.WaitGroup           // releases under way
}

func newPool(l Leaser, c Config) *pool {
	return &pool{leaser: l, rotation: c.Rotation, now: c.Now, warn: c.Log.Warn, held: map[*held]bool{}, keys: map[string]*held{}, turns: map[string]chan struct{}{}}
}

// Times of a pool. A lease is renewed early enough for a second try; one that nobody uses goes back.
const (
	idleLimit      = time.Minute
	renewMargin    = 60 * time.Second
	sweepEvery     = 5 * time.Second
	releaseTimeout = 10 * time.Second
)

// take returns a lease for one user: a shared one where the rotation allows, else a new one.
func (p *pool) take(ctx context.Context, client, target string, exclude []string) (*held, error) {
	key := p.rotation.key(client, target)
	h, err := p.sharedOrTurn(ctx, key)
	if h != nil || err != nil {
		return h, err
	}
	defer p.endTurn(key)
	lease, err := p.leaser.Acquire(ctx, Request{Target: target, StickyKey: p.rotation.stickyKey(client, target), Exclude: exclude})
	if err != nil {
		return nil, err
	}
	now := p.now()
	h = &held{lease: lease, key: key, since: now, used: now, users: 1, target: target, outcome: OK}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[h] = true
	if key != "" {
		p.keys[key] = h
	}
	return h, nil
}

// sharedOrTurn returns a shared lease, or none when it is the caller's turn to take one: of many
// requests that begin at once, one leases and the others use what it got.
func (p *pool) sharedOrTurn(ctx context.Context, key string) (*held, error) {
	for key != "" {
		h, turn := p.sharedOrWait(key)
		if turn == nil {
			return h, nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, nil
}

// sharedOrWait returns a shared lease, or whose turn to wait for, or neither: then it is the caller's.
func (p *pool) sharedOrWait(key string) (*held, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.shared(key); h != nil {
		return h, nil
	}
	if turn, taken := p.turns[key]; taken {
		return nil, turn
	}
	p.turns[key] = make(chan struct{})
	return nil, nil
}

func (p *pool) endTurn(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if turn, ok := p.turns[key]; ok {
		close(turn)
		delete(p.turns, key)
	}
}

// shared needs the lock.
func (p *pool) shared(key string) *held {
	h := p.keys[key]
	if h == nil {
		return nil
	}
	now := p.now()
	if h.retired || p.rotation.over(h.since, now) || !now.Before(h.lease.ExpireTime) {
		p.retire(h)
		return nil
	}
	h.users++
	return h
}

// give takes a user off a lease. Anything but OK retires it, so that the next request rotates.
func (p *pool) give(h *held, outcome Outcome, target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.users--
	h.used = p.now()
	if outcome != OK {
		h.outcome, h.target = outcome, target
		p.retire(h)
		return
	}
	if h.key == "" {
		h.retired = true
	}
	p.releaseIfDone(h)
}

func (p *pool) retire(h *held) {
	h.retired = true
	if p.keys[h.key] == h {
		delete(p.keys, h.key)
	}
	p.releaseIfDone(h)
}

// releaseIfDone gives a retired lease back when its last user has left.
func (p *pool) releaseIfDone(h *held) {
	if !h.retired || h.users > 0 || !p.held[h] {
		return
	}
	delete(p.held, h)
	p.busy.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		if err := p.leaser.Release(ctx, h.lease.ID, h.outcome, h.target); err != nil {
			p.warn("lease not given back, it ends by itself", "proxy", h.lease.Proxy, "error", err.Error())
		}
	})
}

func (p *pool) run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.sweep(ctx)
		}
	}
}

// sweep retires what is idle or has served its time, and renews what is in use.
func (p *pool) sweep(ctx context.Context) {
	for _, h := range p.due() {
		lease, err := p.leaser.Renew(ctx, h.lease.ID)
		p.mu.Lock()
		if err != nil {
			p.warn("lease not renewed", "proxy", h.lease.Proxy, "error", err.Error())
			p.retire(h)
		} else {
			h.lease.ExpireTime = lease.ExpireTime
			if lease.Draining {
				p.retire(h)
			}
		}
		p.mu.Unlock()
	}
}

func (p *pool) due() []*held {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var renew []*held
	for h := range p.held {
		idle := h.users == 0 && now.Sub(h.used) >= idleLimit
		if idle || p.rotation.over(h.since, now) {
			p.retire(h)
		}
		if p.held[h] && now.Add(renewMargin).After(h.lease.ExpireTime) {
			renew = append(renew, h)
		}
	}
	return renew
}

// close gives everything back, users or not, and waits for it within ctx.
func (p *pool) close(ctx context.Context) {
	p.mu.Lock()
	for h := range p.held {
		h.users = 0
		p.retire(h)
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
