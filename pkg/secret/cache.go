package secret

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// MaxAge is how long a value is used before it is looked up again: what a rotated secret may take
	// to be seen everywhere.
	MaxAge = 5 * time.Minute
	// ErrorAge is the same for a failure. It only keeps a thousand proxies that share a broken
	// reference from asking a thousand times in one run.
	ErrorAge = 5 * time.Second
	// fetchTimeout bounds a look-up, which goes on for others when the caller that began it leaves.
	fetchTimeout = 30 * time.Second
)

// Cache remembers what another Resolver said, for MaxAge at most. Callers that ask for the same value
// at once share one look-up.
type Cache struct {
	of     Resolver
	now    func() time.Time
	flight singleflight.Group

	mu      sync.Mutex
	entries map[ref]entry
}

type ref struct{ name, key string }

type entry struct {
	value string
	err   error
	until time.Time
}

// NewCache returns a cache over another resolver.
func NewCache(of Resolver, now func() time.Time) *Cache {
	return &Cache{of: of, now: now, entries: map[ref]entry{}}
}

// Resolve returns the value that is remembered, or looks it up.
func (c *Cache) Resolve(ctx context.Context, name, key string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	at := ref{name, key}
	if e, fresh := c.remembered(at); fresh {
		return e.value, e.err
	}
	done := c.flight.DoChan(name+"\x00"+key, func() (any, error) {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return c.fetch(shared, at), nil
	})
	select {
	case result := <-done:
		e := result.Val.(entry)
		return e.value, e.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *Cache) remembered(at ref) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[at]
	return e, ok && c.now().Before(e.until)
}

// fetch looks a value up and remembers it. The age counts from before the look-up: a value that was
// replaced while it was on its way is old from the start.
func (c *Cache) fetch(ctx context.Context, at ref) entry {
	if e, fresh := c.remembered(at); fresh {
		return e // another look-up ended between our look and our turn
	}
	begun := c.now()
	value, err := c.of.Resolve(ctx, at.name, at.key)
	e := entry{value: value, until: begun.Add(MaxAge)}
	switch {
	case err != nil && ctx.Err() != nil: // not the deadline of any caller
		return entry{err: fmt.Errorf("secret %s: no answer in %s", at.name, fetchTimeout)}
	case err != nil:
		e = entry{err: err, until: begun.Add(ErrorAge)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.entries, func(_ ref, old entry) bool { return !c.now().Before(old.until) })
	c.entries[at] = e
	return e
}
