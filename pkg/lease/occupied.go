package lease

import (
	"context"
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// occupied looks at a slot that could not be created: the request may have been answered before, the
// slot may be ours by a repeated commit, its holder may be gone long enough, or it is taken.
func (a *attempt) occupied(ctx context.Context, p Place, want store.Slot, creds *credentials) (Lease, bool, error) {
	again := a.conflict // a repeated request meets itself with the first slot that it tries
	a.conflict = true
	if !again {
		if l, replayed, err := a.replay(); replayed || err != nil {
			return l, true, err
		}
	}
	a.calls++
	have, err := a.Store.GetSlot(ctx, want.Proxy, want.N)
	switch {
	case errors.Is(err, store.ErrNotFound): // freed meanwhile, or it was the request that existed
		l, replayed, err := a.replay()
		return l, replayed || err != nil, err
	case err != nil:
		return Lease{}, true, away(err)
	case have.LeaseID == want.LeaseID:
		return a.granted(p, have, creds), true, nil
	case takeable(have, a.Now()):
		return a.takeOver(ctx, p, have, want, creds)
	}
	a.known.learn(have)
	return Lease{}, false, nil
}

// takeOver replaces a holder who let the lease expire.
func (a *attempt) takeOver(ctx context.Context, p Place, have, want store.Slot, creds *credentials) (Lease, bool, error) {
	want.Version, want.Fence = have.Version, 0
	a.calls++
	got, err := a.Store.ReplaceSlot(ctx, want, a.request(want))
	switch {
	case err == nil:
		return a.granted(p, got, creds), true, nil
	case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists):
		a.abandon(want)
		return Lease{}, true, away(err)
	}
	// Our own commit may have been repeated by the client.
	a.calls++
	now, err := a.Store.GetSlot(ctx, want.Proxy, want.N)
	if err == nil && now.LeaseID == want.LeaseID {
		return a.granted(p, now, creds), true, nil
	}
	if err == nil && !takeable(now, a.Now()) {
		a.known.learn(now)
	}
	l, replayed, err := a.replay()
	return l, replayed || err != nil, err
}

// abandonTimeout bounds the look after a commit whose outcome is not known.
const abandonTimeout = 2 * time.Second

// abandon frees a slot whose commit may have been made though its answer is an outage: or else it
// would be taken by nobody until it expires. With a request id it stays: the repeated call finds it.
func (a *attempt) abandon(slot store.Slot) {
	if a.r.RequestID != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), abandonTimeout)
	defer cancel()
	have, err := a.Store.GetSlot(ctx, slot.Proxy, slot.N)
	if err == nil && have.LeaseID == slot.LeaseID {
		_ = a.Store.DeleteSlot(ctx, have)
	}
}
