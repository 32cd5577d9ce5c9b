package memory

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

type shard struct {
	entries map[string]fleet.Entry
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
		have := s.shards[id]
		entries := make(map[string]fleet.Entry, len(have.entries))
		for name, e := range have.entries {
			entries[name] = cloneEntry(e)
		}
		out = append(out, store.Shard{ID: id, Entries: entries, Version: have.version})
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
	switch {
	case !ok && sh.Version.IsZero():
		have = &shard{entries: map[string]fleet.Entry{}, version: s.commit()}
		s.shards[sh.ID] = have
		for name, e := range put {
			have.entries[name] = cloneEntry(e)
		}
		return have.version, nil
	case !ok || !have.version.Equal(sh.Version):
		return time.Time{}, store.ErrConflict
	}
	changed := false
	for name, e := range put {
		changed = have.set(name, cloneEntry(e)) || changed
	}
	for _, name := range drop {
		_, there := have.entries[name]
		delete(have.entries, name)
		changed = changed || there
	}
	if changed {
		have.version = s.commit()
	}
	return have.version, nil
}

// set stores an entry and reports whether that changes anything: what does not keeps the version.
func (sh *shard) set(name string, e fleet.Entry) (changed bool) {
	have, there := sh.entries[name]
	if there && reflect.DeepEqual(have, e) {
		return false
	}
	sh.entries[name] = e
	return true
}

// SetVerdict implements store.Catalog.
func (s *Store) SetVerdict(ctx context.Context, id int, name string, v fleet.Verdict) error {
	return s.setEntry(ctx, id, name, func(e *fleet.Entry) { e.Verdict = v })
}

// SetQuarantine implements store.Catalog.
func (s *Store) SetQuarantine(ctx context.Context, id int, name, target string, until time.Time) error {
	return s.setEntry(ctx, id, name, func(e *fleet.Entry) {
		if e.Quarantine == nil {
			e.Quarantine = map[string]time.Time{}
		}
		e.Quarantine[fleet.QuarantineKey(target)] = until
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
	e := cloneEntry(have.entries[name])
	set(&e)
	if have.set(name, cloneEntry(e)) {
		have.version = s.commit()
	}
	return nil
}
