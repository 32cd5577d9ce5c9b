package lease

import (
	"context"
	"sync"
)

// turns has repetitions of one request follow each other: one that comes while the first is being
// served would find neither its answer nor, in a fleet without room, a slot. Instances do not know of
// each other's; there the store arbitrates.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the turn ends
}

func newTurns() *turns { return &turns{busy: map[string]chan struct{}{}} }

// take waits for the turn of key, and returns what ends it.
func (t *turns) take(ctx context.Context, key string) (end func(), err error) {
	for {
		t.mu.Lock()
		before, busy := t.busy[key]
		if !busy {
			mine := make(chan struct{})
			t.busy[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, key)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
