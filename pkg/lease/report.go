package lease

import (
	"context"
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Outcome is what a crawl through a lease came to.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeBanned  Outcome = "banned"
	OutcomeTimeout Outcome = "timeout"
	OutcomeError   Outcome = "error"
)

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
