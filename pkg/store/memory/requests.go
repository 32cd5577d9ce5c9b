package memory

import (
	"context"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

type banKey struct{ proxy, target string }

type ban struct {
	leaseID string
	at      time.Time
}

// GetRequest implements store.Requests.
func (s *Store) GetRequest(ctx context.Context, key string) (store.Request, error) {
	if err := s.lock(ctx); err != nil {
		return store.Request{}, err
	}
	defer s.mu.Unlock()
	r, ok := s.requests[key]
	if !ok {
		return store.Request{}, store.ErrNotFound
	}
	return r, nil
}

// RecordBan implements store.Requests.
func (s *Store) RecordBan(ctx context.Context, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	key := banKey{proxy, target}
	kept := slices.DeleteFunc(slices.Clone(s.bans[key]), func(b ban) bool {
		return b.leaseID == leaseID || b.at.Before(at.Add(-window))
	})
	kept = append(kept, ban{leaseID, micros(at)})
	s.bans[key] = kept
	s.commit()
	return len(kept), nil
}
