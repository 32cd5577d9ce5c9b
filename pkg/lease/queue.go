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
	lines map[string]*line // by filter
}

// line is who waits for the same, by arrival. Its first width may try at once: one while there is no
// room, and more with each who found some, or else a line would last long after the room came back.
type line struct {
	waiters []*waiter
	width   int
}

const maxWidth = 32

type waiter struct{ turn chan struct{} } // has room for one: more turns than one mean no more

func newQueue() *queue { return &queue{lines: map[string]*line{}} }

// The pauses between two tries of who is first in line: short, as each costs a call or two, and longer
// while nothing moves.
const (
	firstPause = 50 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// wait calls try until it grants, refuses for good, or the limit is over. Where nobody waits for the
// same, that begins at once; else in turn.
func (q *queue) wait(ctx context.Context, key string, limit time.Duration, rand func() float64, try func() (Lease, error)) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var l Lease
	var err error
	if q.empty(key) {
		if l, err = try(); err == nil || !worthWaiting(err) {
			return l, err
		}
	}
	w := q.join(key)
	defer q.leave(key, w)
	for pause := firstPause; ; {
		// Jitter keeps the instances from asking at the same moments.
		timer := time.NewTimer(time.Duration(float64(pause) * (0.75 + rand()/2)))
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
		if !q.mayTry(key, w) {
			continue
		}
		l, err = try()
		q.tried(key, err == nil)
		if err == nil || !worthWaiting(err) {
			return l, err
		}
	}
}

// worthWaiting reports whether a few seconds may change an answer. Where no proxy matches at all they
// do not.
func worthWaiting(err error) bool {
	switch asError(err).Reason {
	case NoCapacity, Contention, NoneHealthy, Quarantined, StoreUnavailable:
		return true
	}
	return false
}

func (q *queue) empty(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines[key] == nil
}

func (q *queue) join(key string) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil {
		l = &line{width: 1}
		q.lines[key] = l
	}
	w := &waiter{turn: make(chan struct{}, 1)}
	l.waiters = append(l.waiters, w)
	return w
}

func (q *queue) mayTry(key string, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, ahead := range q.lines[key].first() {
		if ahead == w {
			return true
		}
	}
	return false
}

func (q *queue) tried(key string, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if found {
		l.width = min(2*l.width, maxWidth)
	} else {
		l.width = 1
	}
}

// leave takes a waiter out of its line, and lets the next ones know.
func (q *queue) leave(key string, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	for i := range l.waiters {
		if l.waiters[i] == w {
			l.waiters = append(l.waiters[:i:i], l.waiters[i+1:]...)
			break
		}
	}
	if len(l.waiters) == 0 {
		delete(q.lines, key)
		return
	}
	l.poke()
}

// wake lets everybody who is first in line try now: something became free.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lines {
		l.poke()
	}
}

func (l *line) first() []*waiter { return l.waiters[:min(l.width, len(l.waiters))] }

func (l *line) poke() {
	for _, w := range l.first() {
		select {
		case w.turn <- struct{}{}:
		default:
		}
	}
}
