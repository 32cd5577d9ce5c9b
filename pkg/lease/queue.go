package lease

import (
	"context"
	"sync"
	"time"
)

// queue lets those who wait for a slot try in the order in which they came. It holds within one
// instance; instances compete.
type queue struct {
	mu    sync.Mutex
	lines map[string][]*waiter // by filter
}

type waiter struct{ turn chan struct{} } // has room for one: more turns than one mean no more

func newQueue() *queue { return &queue{lines: map[string][]*waiter{}} }

// The pauses between two tries of who is first in line: short, as each costs a call or two, and longer
// while nothing moves.
const (
	firstPause = 50 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// wait calls try until it grants, refuses for good, or r.Wait is over. Without a wait, and where
// nobody waits for the same, that is at once.
func (q *queue) wait(ctx context.Context, r Request, now func() time.Time, try func() (Lease, error)) (Lease, error) {
	if r.Wait <= 0 {
		return try()
	}
	ctx, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	key := r.Filter.key()
	w := q.join(key)
	defer q.leave(key, w)
	pause := firstPause
	var err error
	for {
		if q.first(key, w) {
			var l Lease
			if l, err = try(); err == nil || !worthWaiting(err) {
				return l, err
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			if err == nil {
				err = refuse(NoCapacity, "others wait for the same, and nothing became free in time")
			}
			return Lease{}, err
		case <-w.turn:
			timer.Stop()
			pause = firstPause
		case <-timer.C:
			pause = min(pause*3/2, longPause)
		}
	}
}

func worthWaiting(err error) bool {
	switch asError(err).Reason {
	case NoCapacity, Contention, NoneHealthy, StoreUnavailable, Quarantined, NoProxies, FilterEmpty:
		return true
	}
	return false
}

func (q *queue) join(key string) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &waiter{turn: make(chan struct{}, 1)}
	q.lines[key] = append(q.lines[key], w)
	return w
}

func (q *queue) first(key string, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines[key][0] == w
}

// leave takes a waiter out of its line, and lets the next one know.
func (q *queue) leave(key string, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[key]
	for i := range line {
		if line[i] == w {
			line = append(line[:i:i], line[i+1:]...)
			break
		}
	}
	if len(line) == 0 {
		delete(q.lines, key)
		return
	}
	q.lines[key] = line
	line[0].poke()
}

// wake lets everybody who is first in line try now: something became free.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, line := range q.lines {
		line[0].poke()
	}
}

func (w *waiter) poke() {
	select {
	case w.turn <- struct{}{}:
	default:
	}
}
