package firestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
		return nil, outage(ctx, "read", colCatalog, err)
	}
	var out []store.Shard
	for _, d := range docs {
		id, err := strconv.Atoi(d.Ref.ID)
		if err != nil || id < 0 || s.shard(id).ID != d.Ref.ID {
			continue // not a shard
		}
		out = append(out, store.Shard{ID: id, Entries: decodeEntries(d), Version: d.UpdateTime.UTC()})
	}
	slices.SortFunc(out, func(a, b store.Shard) int { return a.ID - b.ID })
	return out, nil
}

func decodeEntries(d *firestore.DocumentSnapshot) map[string]fleet.Entry {
	var doc shardDocument
	if d.DataTo(&doc) == nil && doc.Entries != nil {
		return doc.Entries
	}
	// Read one by one. What cannot be read is there, and empty: so the next run mends or drops it.
	entries := map[string]fleet.Entry{}
	for name, raw := range field[map[string]any](d.Data(), fieldEntries) {
		entries[name] = decodeEntry(raw)
	}
	return entries
}

// decodeEntry goes by way of JSON, in which an entry has the same fields as in Firestore.
func decodeEntry(raw any) fleet.Entry {
	var e fleet.Entry
	data, err := json.Marshal(raw)
	if err != nil || json.Unmarshal(data, &e) != nil {
		return fleet.Entry{}
	}
	return e
}

// WriteShard implements store.Catalog.
func (s *Store) WriteShard(ctx context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref := s.shard(sh.ID)
	if sh.Version.IsZero() {
		return s.createShard(ctx, ref, put)
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
	result, err := ref.Update(ctx, updates, ifVersion(sh.Version))
	if err != nil {
		return time.Time{}, refused(ctx, "write shard", ref.ID, err)
	}
	return result.UpdateTime.UTC(), nil
}

func (s *Store) createShard(ctx context.Context, ref *firestore.DocumentRef, entries map[string]fleet.Entry) (time.Time, error) {
	result, err := ref.Create(ctx, shardDocument{Entries: entries})
	if err == nil {
		return result.UpdateTime.UTC(), nil
	}
	err = refused(ctx, "create shard", ref.ID, err)
	if errors.Is(err, store.ErrExists) {
		err = fmt.Errorf("create shard %s: %w: it exists", ref.ID, store.ErrConflict)
	}
	return time.Time{}, err
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
	err = refused(ctx, "set entry "+name+" in shard", ref.ID, err)
	if status.Code(err) == codes.NotFound { // of the shard, or of the database
		if _, getErr := get(ctx, "get shard", ref); errors.Is(getErr, store.ErrNotFound) {
			return getErr
		}
	}
	return err
}
