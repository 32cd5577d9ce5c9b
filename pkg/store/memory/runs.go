package memory

import (
	"context"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// LockRun implements store.Runs.
func (s *Store) LockRun(ctx context.Context, holder string, now time.Time, ttl time.Duration) (store.Run, error) {
	if err := s.lock(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.mu.Unlock()
	if s.run.Holder != "" && now.Before(s.run.ExpireTime) {
		return cloneRun(s.run), store.ErrLocked
	}
	s.run.Fence++
	s.run.Holder, s.run.ExpireTime, s.run.Version = holder, micros(now.Add(ttl)), s.commit()
	return cloneRun(s.run), nil
}

// UnlockRun implements store.Runs.
func (s *Store) UnlockRun(ctx context.Context, r store.Run) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	switch {
	case r.Fence == 0, r.Fence != s.run.Fence:
		return store.ErrConflict
	case s.run.Holder == "" && s.run.EndTime.Equal(micros(r.EndTime)):
		return nil // it was this very call, repeated
	case s.run.Holder == "":
		return store.ErrConflict
	}
	r.Holder, r.ExpireTime, r.EndTime = "", time.Time{}, micros(r.EndTime)
	r.Version = s.commit()
	s.run = cloneRun(r)
	return nil
}

// GetRun implements store.Runs.
func (s *Store) GetRun(ctx context.Context) (store.Run, error) {
	if err := s.lock(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.mu.Unlock()
	return cloneRun(s.run), nil
}
