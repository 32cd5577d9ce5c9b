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
	if err == nil && v.byName[proxy] == nil {
		return refuse(LeaseRevoked, "the lease has ended: its proxy is gone")
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
	l := answer(slot, v.entry(slot.Proxy), nil)
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
		if !known {
			if slot, err = s.find(ctx, id); err != nil {
				return Lease{}, err
			}
		}
		if err := s.alive(slot); err != nil {
			return Lease{}, err
		}
		if revoked(slot, v, proxy, s.Now()) {
			return Lease{}, refuse(LeaseRevoked, "the lease has ended: its proxy is gone")
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

// revoked reports whether the instance behind a slot cannot be there any more.
func revoked(slot store.Slot, v *view, proxy string, now time.Time) bool {
	c := v.byName[proxy]
	if c == nil {
		return true
	}
	return draining(slot, c.Entry) && !c.Entry.DrainDeadline.IsZero() && now.After(c.Entry.DrainDeadline)
}

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

// Outcome is what a crawl through a lease came to.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeBanned  Outcome = "banned"
	OutcomeTimeout Outcome = "timeout"
	OutcomeError   Outcome = "error"
)

// Release gives a lease back. Giving back what has ended already is success and touches nobody
// else's lease.
func (s *Service) Release(ctx context.Context, id string, outcome Outcome, target string) error {
	proxy, n, ok := ParseID(id)
	if !ok {
		return refuse(LeaseNotFound, "there is no such lease")
	}
	slot, known := s.known.get(proxy, n, id)
	for range 3 {
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
		err := s.Store.DeleteSlot(ctx, slot)
		if err == nil {
			s.known.free(slot)
			s.queue.wake()
			return s.note(ctx, slot, outcome, target)
		}
		if !errors.Is(err, store.ErrConflict) {
			return away(err)
		}
		s.known.forget(proxy, n)
		known = false
	}
	return refuse(Contention, "the lease is being changed by others; try again")
}

// Report notes what a crawl through a live lease came to, and keeps the lease.
func (s *Service) Report(ctx context.Context, id string, outcome Outcome, target string) error {
	proxy, n, ok := ParseID(id)
	if !ok {
		return refuse(LeaseNotFound, "there is no such lease")
	}
	slot, known := s.known.get(proxy, n, id)
	if !known {
		var err error
		if slot, err = s.find(ctx, id); err != nil {
			return err
		}
	} else if err := s.alive(slot); err != nil {
		return err
	}
	return s.note(ctx, slot, outcome, target)
}

// A proxy that three distinct leases call banned by a host within half an hour gets no lease for
// that host for half an hour; other hosts still get it.
const (
	bansToQuarantine = 3
	banWindow        = 30 * time.Minute
	quarantineTime   = 30 * time.Minute
)

// note counts an outcome, and quarantines a proxy that a target bans. The report of a lease that
// names no target goes to the target that the lease was taken for.
func (s *Service) note(ctx context.Context, slot store.Slot, outcome Outcome, target string) error {
	if s.Metrics != nil && outcome != "" {
		s.Metrics.outcomes.WithLabelValues(string(outcome)).Inc()
	}
	if target == "" {
		target = slot.Target
	}
	if outcome != OutcomeBanned || target == "" {
		return nil
	}
	target = fleet.QuarantineKey(target)
	bans, err := s.Store.RecordBan(ctx, slot.Proxy, target, slot.LeaseID, s.Now(), banWindow)
	if err != nil {
		return away(err)
	}
	if bans < bansToQuarantine {
		return nil
	}
	v, err := s.catalog.get(ctx)
	if err != nil {
		return err
	}
	c := v.byName[slot.Proxy]
	if c == nil {
		return nil
	}
	err = s.Store.SetQuarantine(ctx, c.Shard, slot.Proxy, target, s.Now().Add(quarantineTime))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return away(err)
	}
	return nil
}
