package lease

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// The ages of a copy of the catalog. A copy is renewed when it is older than fresh; none is used that
// is older than stale. Reconcile counts on stale: it waits longer than that before it takes anything
// from under leases.
const (
	fresh       = 2 * time.Second
	stale       = 5 * time.Second
	readTimeout = 4 * time.Second
)

// view is one copy of the catalog. It is never changed.
type view struct {
	at      time.Time // when reading began: what is in it was true then or later
	all     []Candidate
	byName  map[string]*Candidate
	targets map[string]bool // that some proxy is kept from, or was lately
	absent  bool            // there is no catalog, or a part of it cannot be read: who is not in it may still exist

	readyProxies int
	ready        int // slots of all ready proxies

	mu       sync.Mutex
	filtered map[string]filtered // by filter, for the life of the copy
}

type filtered struct {
	pool *Pool
	err  *Error
}

// eligible is Eligible, remembered: a thousand crawlers ask for the same few filters.
func (v *view) eligible(f Filter, now time.Time) (*Pool, *Error) {
	if len(f.Exclude) > 0 {
		return Eligible(v.all, f, now)
	}
	key := v.key(f)
	v.mu.Lock()
	defer v.mu.Unlock()
	got, ok := v.filtered[key]
	if !ok {
		got.pool, got.err = Eligible(v.all, f, now)
		if len(v.filtered) < maxFiltered {
			v.filtered[key] = got
		}
	}
	return got.pool, got.err
}

// key is equal for filters that let the same proxies through: targets that have banned no proxy make
// no difference, and crawls have thousands of them.
func (v *view) key(f Filter) string {
	if !v.targets[fleet.QuarantineKey(f.Target)] {
		f.Target = ""
	}
	return f.key()
}

// maxFiltered bounds what is remembered by filter: crawlers choose filters.
const maxFiltered = 1000

// key is equal for equal filters, and for no others: each part is quoted.
func (f Filter) key() string {
	var b strings.Builder
	for _, part := range []string{f.Provider, f.Region, f.Target} {
		b.WriteString(strconv.Quote(part))
	}
	for _, k := range slices.Sorted(maps.Keys(f.Labels)) {
		b.WriteString(strconv.Quote(k))
		b.WriteString(strconv.Quote(f.Labels[k]))
	}
	b.WriteByte('-')
	for _, name := range slices.Sorted(slices.Values(f.Exclude)) {
		b.WriteString(strconv.Quote(name))
	}
	return b.String()
}

// catalog keeps the copy current, reading once however many ask.
type catalog struct {
	store store.Catalog
	now   func() time.Time

	flight singleflight.Group
	mu     sync.Mutex
	copy   *view
}

func newCatalog(s store.Catalog, now func() time.Time) *catalog {
	return &catalog{store: s, now: now}
}

// get returns a copy that is at most stale old. While one flight renews it, others go on with what
// there is.
func (c *catalog) get(ctx context.Context) (*view, error) {
	v, age := c.current()
	if v != nil && age < fresh {
		return v, nil
	}
	result := c.flight.DoChan("", func() (any, error) {
		// The flight serves others, too: it does not end with the one who began it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return c.read(ctx)
	})
	if v != nil && age < fresh+time.Second {
		return v, nil
	}
	select {
	case r := <-result:
		if r.Err == nil {
			return r.Val.(*view), nil
		}
		if v, age := c.current(); v != nil && age < stale {
			return v, nil
		}
		return nil, away(r.Err)
	case <-ctx.Done():
		return nil, away(ctx.Err())
	}
}

func (c *catalog) current() (*view, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copy == nil {
		return nil, 0
	}
	return c.copy, c.now().Sub(c.copy.at)
}

func (c *catalog) read(ctx context.Context) (*view, error) {
	at := c.now()
	shards, err := c.store.ReadCatalog(ctx)
	if err != nil {
		return nil, err
	}
	v := &view{at: at, absent: len(shards) == 0, byName: map[string]*Candidate{}, targets: map[string]bool{}, filtered: map[string]filtered{}}
	for _, s := range shards {
		v.absent = v.absent || s.Entries == nil
		for name, e := range s.Entries {
			v.all = append(v.all, Candidate{Name: name, Shard: s.ID, Entry: e})
			for target := range e.Quarantine {
				v.targets[target] = true
			}
		}
	}
	// In the order of slot documents, so that neighbours here are neighbours in a window query.
	slices.SortFunc(v.all, func(a, b Candidate) int {
		return strings.Compare(store.SlotPrefix(a.Name), store.SlotPrefix(b.Name))
	})
	before := 0
	for i := range v.all {
		c := &v.all[i]
		v.byName[c.Name] = c
		c.before = before
		before += c.size()
		if c.Entry.Ready() {
			v.readyProxies++
			v.ready += max(0, int(c.Entry.Capacity))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copy = v
	return v, nil
}
