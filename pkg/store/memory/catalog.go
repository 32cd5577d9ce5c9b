package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

type shard struct {
	entries map[string]fleet.Entry // replaced as a whole with every write, so that readers may share it
	version time.Time
}

// ReadCatalog implements store.Catalog.
func (s *Store) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Shard
	for _, id := range slices.Sorted(maps.Keys(s.shards)) {
		out = append(out, store.Shard{ID: id, Entries: maps.Clone(s.shards[id].entries), Version: s.shards[id].version})
	}
	return out, nil
}

// WriteShard implements store.Catalog.
func (s *Store) WriteShard(ctx context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	if err := s.lock(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	have, ok := s.shards[sh.ID]
	if !ok && sh.Version.IsZero() {
		have = &shard{}
		s.shards[sh.ID] = have
	} else if !ok || !have.version.Equal(sh.Version) {
		return time.Time{}, store.ErrConflict
	}
	s.change(have, func(entries map[string]fleet.Entry) {
		for name, e := range put {
			entries[name] = cloneEntry(e)
		}
		for _, name := range drop {
			delete(entries, name)
		}
	})
	return have.version, nil
}

// SetVerdict implements store.Catalog.
func (s *Store) SetVerdict(ctx context.Context, id int, name string, v fleet.Verdict) error {
	return s.setEntry(ctx, id, name, func(e *fleet.Entry) {
		v.Since = micros(v.Since)
		e.Verdict = v
	})
}

// SetQuarantine implements store.Catalog.
func (s *Store) SetQuarantine(ctx context.Context, id int, name, target string, until time.Time) error {
	return s.setEntry(ctx, id, name, func(e *fleet.Entry) {
		q := maps.Clone(e.Quarantine)
		if q == nil {
			q = map[string]time.Time{}
		}
		q[fleet.QuarantineKey(target)] = micros(until)
		e.Quarantine = q
	})
}

func (s *Store) setEntry(ctx context.Context, id int, name string, set func(*fleet.Entry)) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	have, ok := s.shards[id]
	if !ok {
		return store.ErrNotFound
	}
	s.change(have, func(entries map[string]fleet.Entry) {
		e := entries[name]
		set(&e)
		entries[name] = e
	})
	return nil
}

func (s *Store) change(have *shard, change func(map[string]fleet.Entry)) {
	entries := maps.Clone(have.entries)
	if entries == nil {
		entries = map[string]fleet.Entry{}
	}
	change(entries)
	have.entries, have.version = entries, s.commit()
}

// cloneEntry copies what the caller may go on changing.
func cloneEntry(e fleet.Entry) fleet.Entry {
	e.Labels, e.Quarantine = maps.Clone(e.Labels), maps.Clone(e.Quarantine)
	if e.Credentials != nil {
		c := *e.Credentials
		e.Credentials = &c
	}
	return e
}
