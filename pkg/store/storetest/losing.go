package storetest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"

	"crawl.example.com/proxyfleet/pkg/store"
)

// ErrLost is what comes instead of a reply that was lost, or of a write that never arrived. The caller
// cannot tell which.
var ErrLost = errors.New("no reply")

// LoseFirstWrites returns s with the first write of every document failing by ErrLost: of some it is
// applied and its reply lost, of the others it is not applied. The seed decides which.
func LoseFirstWrites(s store.Store, seed uint64) store.Store {
	l := &losing{seed: seed, seen: map[string]bool{}, reply: map[string]bool{}}
	// Whether it is the first write is decided before the call, its reply lost after it.
	return Around(s, l.before, l.after)
}

type losing struct {
	seed uint64

	mu    sync.Mutex
	seen  map[string]bool
	reply map[string]bool // documents whose first write was applied, and whose reply is to be lost
}

func (l *losing) before(_ context.Context, c Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Writes == 0 || l.seen[c.Doc] {
		return nil
	}
	l.seen[c.Doc] = true
	if l.applies(c.Doc) {
		l.reply[c.Doc] = true
		return nil
	}
	return fmt.Errorf("%s %s: %w", c.Method, c.Doc, ErrLost)
}

func (l *losing) after(_ context.Context, c Call, _ error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Writes == 0 || !l.reply[c.Doc] {
		return nil
	}
	delete(l.reply, c.Doc)
	return fmt.Errorf("%s %s: %w", c.Method, c.Doc, ErrLost)
}

// applies depends on the document alone, so that a seed means the same however calls interleave.
func (l *losing) applies(doc string) bool {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, l.seed, doc)
	return h.Sum32()>>8&1 == 0
}
