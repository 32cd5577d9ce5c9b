package firestore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/firestore"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

const fieldEntries = "entries"

type shardDocument struct {
	Entries map[string]fleet.Entry `firestore:"entries"`
}

func (s *Store) shard(id int) *firestore.DocumentRef {
	return s.client.Collection(colCatalog).Doc(strconv.Itoa(id))
}

// ReadCatalog implements store.Catalog.
func (s *Store) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	docs, err := s.client.Collection(colCatalog).Documents(ctx).GetAll()
	if err != nil {
		return nil, failure(ctx, "read", colCatalog, err)
	}
	var out []store.Shard
	for _, d := range docs {
		id, err := strconv.Atoi(d.Ref.ID)
		if err != nil || id < 0 {
			continue // not a shard
		}
		var doc shardDocument
		if err := d.DataTo(&doc); err != nil {
			doc.Entries = nil // unreadable: as good as empty, and rebuilt by the next run
		}
		out = append(out, store.Shard{ID: id, Entries: doc.Entries, Version: d.UpdateTime.UTC()})
	}
	slices.SortFunc(out, func(a, b store.Shard) int { return a.ID - b.ID })
	return out, nil
}

// WriteShard implements store.Catalog.
func (s *Store) WriteShard(ctx context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref := s.shard(sh.ID)
	if sh.Version.IsZero() {
		result, err := ref.Create(ctx, shardDocument{Entries: put})
		if err != nil {
			err = failure(ctx, "create shard", ref.ID, err)
			if errors.Is(err, store.ErrExists) {
				err = store.ErrConflict
			}
			return time.Time{}, err
		}
		return result.UpdateTime.UTC(), nil
	}
	var updates []firestore.Update
	for name, e := range put {
		updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{fieldEntries, name}, Value: e})
	}
	for _, name := range drop {
		updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{fieldEntries, name}, Value: firestore.Delete})
	}
	if len(updates) == 0 {
		return sh.Version, nil
	}
	result, err := ref.Update(ctx, updates, firestore.LastUpdateTime(sh.Version))
	if err != nil {
		return time.Time{}, failure(ctx, "write shard", ref.ID, err)
	}
	return result.UpdateTime.UTC(), nil
}

// SetVerdict implements store.Catalog.
func (s *Store) SetVerdict(ctx context.Context, shard int, name string, v fleet.Verdict) error {
	v.Since = micros(v.Since)
	return s.setEntry(ctx, shard, name, []string{"verdict"}, v)
}

// SetQuarantine implements store.Catalog.
func (s *Store) SetQuarantine(ctx context.Context, shard int, name, target string, until time.Time) error {
	return s.setEntry(ctx, shard, name, []string{"quarantine", fleet.QuarantineKey(target)}, micros(until))
}

func (s *Store) setEntry(ctx context.Context, shard int, name string, path []string, value any) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref := s.shard(shard)
	_, err := ref.Update(ctx, []firestore.Update{{FieldPath: append(firestore.FieldPath{fieldEntries, name}, path...), Value: value}})
	return failure(ctx, "set entry "+name+" in shard", ref.ID, err)
}
