package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

const (
	// maxShardBytes keeps a shard below the store's limit of 1 MiB a document, however long the
	// labels are: JSON is about as long as what Firestore counts.
	maxShardBytes = 700_000
	// catalogTimeout bounds one write of a shard, so that the time which an entry says it was
	// narrowed at is true to a few seconds. Settle allows for it.
	catalogTimeout = 4 * time.Second
	// catalogAttempts is how often a shard is read and written anew because a verdict flipped meanwhile.
	catalogAttempts = 6
)

// place is where an entry is, and what it says.
type place struct {
	shard int
	entry fleet.Entry
}

// places indexes the catalog by name. Where a name is in two shards, the first one counts.
func places(shards []store.Shard) map[string]place {
	out := map[string]place{}
	for _, sh := range shards {
		for name, e := range sh.Entries {
			if _, twice := out[name]; !twice {
				out[name] = place{sh.ID, e}
			}
		}
	}
	return out
}

// change is what one shard lacks.
type change struct {
	put  map[string]fleet.Entry
	drop []string
}

// changes spreads the wanted entries over shards: each stays where it is while there is room, new
// ones go where there is some. It returns what is to be written, by shard.
func changes(shards []store.Shard, want map[string]fleet.Entry) map[int]*change {
	l := newLayout(shards)
	out := map[int]*change{}
	at := func(id int) *change {
		if out[id] == nil {
			out[id] = &change{put: map[string]fleet.Entry{}}
		}
		return out[id]
	}
	have := places(shards)
	for _, sh := range shards {
		for _, name := range slices.Sorted(maps.Keys(sh.Entries)) {
			e, wanted := want[name]
			if !wanted || have[name].shard != sh.ID || !l.keep(sh.ID, e) {
				c := at(sh.ID)
				c.drop = append(c.drop, name)
				if have[name].shard == sh.ID {
					delete(have, name)
				}
				continue
			}
			if !sameEntry(e, sh.Entries[name]) {
				at(sh.ID).put[name] = e
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, placed := have[name]; !placed {
			at(l.add(want[name])).put[name] = want[name]
		}
	}
	return out
}

// layout counts what is in each shard.
type layout struct {
	ids     []int
	entries map[int]int
	bytes   map[int]int
}

func newLayout(shards []store.Shard) *layout {
	l := &layout{entries: map[int]int{}, bytes: map[int]int{}}
	for _, sh := range shards {
		l.ids = append(l.ids, sh.ID)
	}
	return l
}

func (l *layout) keep(id int, e fleet.Entry) bool {
	size := sizeOf(e)
	if l.entries[id]+1 > store.MaxShardEntries || l.bytes[id]+size > maxShardBytes {
		return false
	}
	l.entries[id]++
	l.bytes[id] += size
	return true
}

// add finds a shard for a new entry, a new one if need be.
func (l *layout) add(e fleet.Entry) (id int) {
	for _, id := range l.ids {
		if l.keep(id, e) {
			return id
		}
	}
	for slices.Contains(l.ids, id) {
		id++
	}
	l.ids = append(l.ids, id)
	l.keep(id, e)
	return id
}

// sizeOf is about how many bytes of a document an entry takes, its name included.
func sizeOf(e fleet.Entry) int {
	size := 400 // names of fields, numbers and times
	for k, v := range e.Labels {
		size += len(k) + len(v) + 4
	}
	for k := range e.Quarantine {
		size += len(k) + 12
	}
	size += len(e.Host) + len(e.Provider) + len(e.Region) + len(e.GateReason)
	if e.Credentials != nil {
		size += len(e.Credentials.Name) + len(e.Credentials.Key) + 20
	}
	return size
}

// publish brings the catalog in line with want, which derives all entries from those that are there.
// A shard that changed meanwhile, by a verdict that flipped, is read and derived again.
func (r *run) publish(ctx context.Context, shards []store.Shard, want func(map[string]place) map[string]fleet.Entry) (writes int, err error) {
	for range catalogAttempts {
		todo := changes(shards, want(places(shards)))
		conflict := false
		for _, id := range slices.Sorted(maps.Keys(todo)) {
			err := r.writeShard(ctx, shards, id, *todo[id])
			switch {
			case errors.Is(err, store.ErrConflict):
				conflict = true
			case err != nil:
				return writes, err
			default:
				writes++
			}
		}
		if !conflict {
			return writes, nil
		}
		if shards, err = r.readCatalog(ctx); err != nil {
			return writes, err
		}
	}
	return writes, fmt.Errorf("write catalog: %w %d times", store.ErrConflict, catalogAttempts)
}

func (r *run) writeShard(ctx context.Context, shards []store.Shard, id int, c change) error {
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	sh := store.Shard{ID: id}
	for _, have := range shards {
		if have.ID == id {
			sh.Version = have.Version
		}
	}
	if _, err := r.Store.WriteShard(ctx, sh, c.put, c.drop); err != nil {
		return fmt.Errorf("write shard %d of the catalog: %w", id, err)
	}
	return nil
}

func (r *run) readCatalog(ctx context.Context) ([]store.Shard, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	shards, err := r.Store.ReadCatalog(ctx)
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	return shards, nil
}
