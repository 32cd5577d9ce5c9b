// Package testclock is a clock that only tests move.
package testclock

import (
	"sync"
	"time"
)

// Clock shows the time that it was set to. It may be used by several goroutines at once.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// At returns a clock that shows t.
func At(t time.Time) *Clock { return &Clock{t: t} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Advance moves the clock by d, which may be negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
