package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// fate is what becomes of one call of a run.
type fate int

const (
	fateDo       fate = iota // it works
	fateLose                 // it works and its reply is lost
	fateRefuse               // it fails without effect
	fateConflict             // somebody else's write came first; for conditional writes
	fateCrash                // the process dies before the call
	fateCrashed              // the process is dead
	fateTimeout              // the caller gives up; the call may take effect some seconds later
)

var (
	errLost    = errors.New("the reply was lost")
	errRefused = errors.New("unavailable")
	errCrashed = errors.New("the process is dead")
)

// player is one run: one process that can die at any of its calls.
type player struct {
	chaos *chaos
	id    int
	dead  bool
	done  bool
	err   error
	sum   Summary
}

// pending is a call that waits for its fate.
type pending struct {
	player *player
	label  string
	fate   chan fate
}

// call asks the scheduler what becomes of a call, and has it take effect.
func (p *player) call(ctx context.Context, label string, effect func()) error {
	c := p.chaos
	do := func() { // once all is calm, calls are made side by side
		c.effects.Lock()
		defer c.effects.Unlock()
		effect()
	}
	switch c.gate(ctx, p, label) {
	case fateDo:
		do()
		return nil
	case fateLose:
		do()
		return errLost
	case fateRefuse:
		return errRefused
	case fateConflict:
		return store.ErrConflict
	case fateTimeout:
		c.later(label, do)
		return ctx.Err()
	}
	return errCrashed
}

// gate blocks until the scheduler has decided, or the caller's time is over.
func (c *chaos) gate(ctx context.Context, p *player, label string) fate {
	c.mu.Lock()
	if p.dead {
		c.mu.Unlock()
		return fateCrashed
	}
	if ctx.Err() != nil {
		c.mu.Unlock()
		return fateRefuse
	}
	if c.calm {
		c.mu.Unlock()
		return fateDo
	}
	w := &pending{player: p, label: label, fate: make(chan fate, 1)}
	c.waiting = append(c.waiting, w)
	c.mu.Unlock()
	select {
	case f := <-w.fate:
		return f
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(o *pending) bool { return o == w })
	select {
	case f := <-w.fate: // decided in the same moment
		return f
	default:
		return fateTimeout
	}
}

// next picks one of the waiting calls, the same one whenever a seed is replayed.
func (c *chaos) next() *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	slices.SortFunc(c.waiting, func(a, b *pending) int {
		if a.player.id != b.player.id {
			return a.player.id - b.player.id
		}
		return strings.Compare(a.label, b.label)
	})
	i := c.rng.IntN(len(c.waiting))
	w := c.waiting[i]
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return w
}

// playerStore is the store as one run sees it.
type playerStore struct {
	Store
	p *player
}

func through[T any](ctx context.Context, p *player, label string, do func() (T, error)) (T, error) {
	var out T
	var err error
	if lost := p.call(ctx, label, func() { out, err = do() }); lost != nil {
		var zero T
		return zero, lost
	}
	return out, err
}

// own is the context of calls that take effect: the scheduler has decided about time already.
func own() context.Context { return context.Background() }

func (s playerStore) ListProxies(ctx context.Context) ([]fleet.Proxy, error) {
	return through(ctx, s.p, "ListProxies", func() ([]fleet.Proxy, error) { return s.Store.ListProxies(own()) })
}

func (s playerStore) GetProxy(ctx context.Context, name string) (fleet.Proxy, error) {
	return through(ctx, s.p, "GetProxy "+name, func() (fleet.Proxy, error) { return s.Store.GetProxy(own(), name) })
}

func (s playerStore) WriteStatus(ctx context.Context, p fleet.Proxy, f store.StatusFields) (fleet.Proxy, error) {
	out, err := through(ctx, s.p, "WriteStatus "+p.Name, func() (fleet.Proxy, error) {
		s.p.chaos.checkFence(s.p, "status write")
		s.p.chaos.trace("    %s: %s instance %+v next %+v drain %+v endpoint %+v retry %+v", p.Name, p.Status.Phase, p.Status.Instance, p.Status.Next, p.Status.Drain, p.Status.Endpoint, p.Status.Retry)
		return s.Store.WriteStatus(own(), p, f)
	})
	if err != nil {
		return p, err
	}
	return out, nil
}

func (s playerStore) RemoveProxy(ctx context.Context, p fleet.Proxy) error {
	_, err := through(ctx, s.p, "RemoveProxy "+p.Name, func() (int, error) { return 0, s.Store.RemoveProxy(own(), p) })
	return err
}

func (s playerStore) DeleteSlot(ctx context.Context, slot store.Slot) error {
	_, err := through(ctx, s.p, "DeleteSlot "+store.SlotID(slot.Proxy, slot.N), func() (int, error) { return 0, s.Store.DeleteSlot(own(), slot) })
	return err
}

func (s playerStore) ProxySlots(ctx context.Context, name string) ([]store.Slot, error) {
	return through(ctx, s.p, "ProxySlots "+name, func() ([]store.Slot, error) { return s.Store.ProxySlots(own(), name) })
}

func (s playerStore) ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]store.Slot, error) {
	return through(ctx, s.p, "ExpiredSlots", func() ([]store.Slot, error) { return s.Store.ExpiredSlots(own(), before, limit) })
}

func (s playerStore) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	return through(ctx, s.p, "ReadCatalog", func() ([]store.Shard, error) { return s.Store.ReadCatalog(own()) })
}

func (s playerStore) WriteShard(ctx context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	return through(ctx, s.p, fmt.Sprint("WriteShard ", sh.ID), func() (time.Time, error) { return s.Store.WriteShard(own(), sh, put, drop) })
}

func (s playerStore) LockRun(ctx context.Context, holder string, now time.Time, ttl time.Duration) (store.Run, error) {
	return through(ctx, s.p, "LockRun", func() (store.Run, error) {
		r, err := s.Store.LockRun(own(), holder, now, ttl)
		if err == nil {
			s.p.chaos.holder = s.p
		}
		return r, err
	})
}

func (s playerStore) UnlockRun(ctx context.Context, r store.Run) error {
	_, err := through(ctx, s.p, "UnlockRun", func() (int, error) { return 0, s.Store.UnlockRun(own(), r) })
	return err
}

// playerCloud is a cloud as one run sees it; every call is checked when it takes effect.
type playerCloud struct {
	p     *player
	cloud *watched
}

func (c playerCloud) Create(ctx context.Context, req provider.CreateRequest) (provider.Instance, error) {
	return through(ctx, c.p, "Create "+req.ProxyName+" "+req.Name, func() (provider.Instance, error) { return c.cloud.create(c.p, req) })
}

func (c playerCloud) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	return through(ctx, c.p, "Get "+ref.Name, func() (provider.Instance, error) { return c.cloud.Get(own(), ref) })
}

func (c playerCloud) Delete(ctx context.Context, ref provider.Ref) error {
	_, err := through(ctx, c.p, "Delete "+ref.Name, func() (int, error) { return 0, c.cloud.delete(c.p, ref) })
	return err
}

func (c playerCloud) ListByTag(ctx context.Context, tag string) ([]provider.Instance, error) {
	var seen []provider.Instance
	var err error
	if lost := c.p.call(ctx, "List "+c.cloud.name, func() { seen, err = c.cloud.ListByTag(own(), tag) }); lost != nil {
		return nil, lost
	}
	return seen, err
}

// late is a call whose caller gave up before it took effect.
type late struct {
	label string
	at    time.Time
	do    func()
}

// later has a call take effect after its caller gave up, or never.
func (c *chaos) later(label string, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The dice are thrown by the scheduler, which alone may use them.
	c.lates = append(c.lates, late{label: label, at: time.Now(), do: do})
}

// maxLate is how long a request may be on its way after its caller gave up.
const maxLate = 5 * time.Second

// runLates decides about calls that were given up: they are lost, or take effect within maxLate.
func (c *chaos) runLates(flush bool) {
	c.mu.Lock()
	lates := c.lates
	c.lates = nil
	slices.SortFunc(lates, func(a, b late) int { return strings.Compare(a.label, b.label) })
	c.mu.Unlock()
	var kept []late
	for _, l := range lates {
		switch {
		case time.Since(l.at) > maxLate || c.rng.IntN(3) == 0: // lost
		case flush || c.rng.IntN(2) == 0:
			l.do()
		default:
			kept = append(kept, l)
		}
	}
	c.mu.Lock()
	c.lates = append(c.lates, kept...)
	c.mu.Unlock()
}
