package lease

import (
	"context"
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// find reads the slot of a live lease, or says why there is none.
func (s *Service) find(ctx context.Context, id string) (store.Slot, error) {
	proxy, n, ok := ParseID(id)
	if !ok {
		return store.Slot{}, refuse(LeaseNotFound, "there is no such lease")
	}
	slot, err := s.Store.GetSlot(ctx, proxy, n)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Slot{}, away(err)
	}
	if err != nil || slot.LeaseID != id {
		return store.Slot{}, s.ended(ctx, proxy)
	}
	return slot, s.alive(slot)
}

// ended says why a lease has no slot any more: with its proxy gone it was revoked, else it expired or
// was given back.
func (s *Service) ended(ctx context.Context, proxy string) *Error {
	v, err := s.catalog.get(ctx)
	if err == nil && v.byName[proxy] == nil && !v.absent {
		return revoked()
	}
	return refuse(LeaseExpired, "the lease has ended: it expired or was given back")
}

func (s *Service) alive(slot store.Slot) error {
	if s.Now().After(slot.ExpireTime) {
		return refuse(LeaseExpired, "the lease expired at %s", slot.ExpireTime.Format(time.RFC3339))
	}
	return nil
}

// Get returns a live lease without credentials.
func (s *Service) Get(ctx context.Context, id string) (Lease, error) {
	slot, err := s.find(ctx, id)
	if err != nil {
		return Lease{}, err
	}
	v, err := s.catalog.get(ctx)
	if err != nil {
		return Lease{}, err
	}
	e := v.entry(slot.Proxy)
	if gone(slot, e, s.Now()) {
		return Lease{}, revoked()
	}
	l := answer(slot, e, nil)
	l.Endpoint = nil
	return l, nil
}

// Renew moves a live lease's expiry to ttl from now. A ttl of 0 means the default, and then a lease
// that lasts longer already is left as it is. A draining proxy's lease ends with the drain at the
// latest. It never revives a lease that has ended.
func (s *Service) Renew(ctx context.Context, id string, ttl time.Duration) (Lease, error) {
	proxy, n, ok := ParseID(id)
	if !ok {
		return Lease{}, refuse(LeaseNotFound, "there is no such lease")
	}
	v, err := s.catalog.get(ctx)
	if err != nil {
		return Lease{}, err
	}
	e := v.entry(proxy)
	creds, err := s.credentials(ctx, e.Credentials)
	if err != nil {
		return Lease{}, err
	}
	slot, known := s.known.get(proxy, n, id)
	for range 3 {
		// Of a proxy that is not in the catalog the store must say whether the slot is still there.
		if !known || v.byName[proxy] == nil {
			if slot, err = s.find(ctx, id); err != nil {
				return Lease{}, err
			}
		}
		if err := s.mayRenew(slot, v); err != nil {
			return Lease{}, err
		}
		want := slot
		want.ExpireTime = renewed(slot, e, ttl, s.Now())
		got, err := s.Store.ReplaceSlot(ctx, want, nil)
		if err == nil {
			s.known.learn(got)
			return answer(got, e, creds), nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return Lease{}, away(err)
		}
		// Changed meanwhile, perhaps by our own commit that the client repeated: look, and go on from there.
		s.known.forget(proxy, n)
		known = false
	}
	return Lease{}, refuse(Contention, "the lease is being changed by others; try again")
}

func (s *Service) mayRenew(slot store.Slot, v *view) error {
	if err := s.alive(slot); err != nil {
		return err
	}
	c := v.byName[slot.Proxy]
	switch {
	case c == nil && v.absent:
		return away(errors.New("the catalog is being rebuilt"))
	case c == nil, gone(slot, c.Entry, s.Now()):
		return revoked()
	}
	return nil
}

// gone reports whether the instance that a slot was granted on cannot be there any more.
func gone(slot store.Slot, e fleet.Entry, now time.Time) bool {
	return draining(slot, e) && !e.DrainDeadline.IsZero() && now.After(e.DrainDeadline)
}

func revoked() *Error { return refuse(LeaseRevoked, "the lease has ended: its proxy is gone") }

// renewed is the new expiry of a lease.
func renewed(slot store.Slot, e fleet.Entry, ttl time.Duration, now time.Time) time.Time {
	until := now.Add(ttl)
	if ttl == 0 {
		until = now.Add(DefaultTTL)
		if until.Before(slot.ExpireTime) {
			until = slot.ExpireTime
		}
	}
	if draining(slot, e) && !e.DrainDeadline.IsZero() && until.After(e.DrainDeadline) {
		until = e.DrainDeadline
	}
	return until
}

// Release gives a lease back. Giving back what has ended already is success and touches nobody
// else's lease.
func (s *Service) Release(ctx context.Context, id string, outcome Outcome, target string) error {
	proxy, n, ok := ParseID(id)
	if !ok {
		return refuse(LeaseNotFound, "there is no such lease")
	}
	slot, known := s.known.get(proxy, n, id)
	var noted error
	for try := range 3 {
		if !known {
			var err error
			slot, err = s.Store.GetSlot(ctx, proxy, n)
			if errors.Is(err, store.ErrNotFound) || err == nil && slot.LeaseID != id {
				return nil
			}
			if err != nil {
				return away(err)
			}
		}
		// Noted first, so that a call which fails half way can be repeated. The slot is freed whatever
		// becomes of the note.
		if try == 0 {
			noted = s.note(ctx, slot, outcome, target)
		}
		err := s.Store.DeleteSlot(ctx, slot)
		if err == nil {
			s.known.free(slot)
			s.queue.wake()
			return noted
		}
		if !errors.Is(err, store.ErrConflict) {
			return away(err)
		}
		s.known.forget(proxy, n)
		known = false
	}
	return refuse(Contention, "the lease is being changed by others; try again")
}
