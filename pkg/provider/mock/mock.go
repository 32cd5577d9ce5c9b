// Package mock is a cloud in memory whose instances really proxy.
//
// The state of an instance is a function of the clock and of what was asked: no timer and no
// goroutine moves it. An instance that is seen running serves its port on 127.0.0.1 with a real
// CONNECT proxy, so a probe or a crawler truly tunnels through it. The memory is that of the process:
// when it ends, all instances are gone, as if somebody had deleted them in the cloud's console, and
// the plane makes new ones. A cloud can be told to fail in every way that a real one does, by its
// settings (for demonstrations) and by its methods (for tests).
package mock

import (
	"context"
	"errors"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Cloud is one cloud. As a provider.Provider it may be shared by any number of control planes, which
// their owner tags keep apart. It is safe for concurrent use.
type Cloud struct {
	settings Settings
	now      func() time.Time
	silent   bool // no instance listens

	mu       sync.Mutex
	byName   map[string]*instance
	order    []*instance                // all that may exist, in the order in which they were made
	failures map[string]*provider.Error // what became of failed launches, by operation
	history  [][]provider.Instance      // what the last listings would have shown, oldest first
	made     int
	calls    Calls
	faults   faults
	closed   bool
}

var _ provider.Provider = (*Cloud)(nil)

// Option changes how a cloud is opened.
type Option func(*Cloud)

// WithClock has the cloud tell the time by now instead of time.Now.
func WithClock(now func() time.Time) Option { return func(c *Cloud) { c.now = now } }

// WithoutListener has no instance listen on any port: for tests with thousands of them, and for those
// that probe nothing.
func WithoutListener() Option { return func(c *Cloud) { c.silent = true } }

// New is the constructor of type mock: see Settings for its block. Every call makes a cloud of its
// own.
func New(_ context.Context, c provider.Config) (provider.Provider, error) {
	var s Settings
	var faults provider.ConfigFaults
	if err := c.Decode(&s); err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	for _, f := range s.check() { // what could not be read is left out, and leaving out is no fault
		faults = append(faults, c.Fault(c.Type+"."+f.key, f.message))
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return open(s), nil
}

// Open makes a cloud from settings that are at hand. Its error names all that is wrong with them.
func Open(s Settings, options ...Option) (*Cloud, error) {
	var wrong []error
	for _, f := range s.check() {
		wrong = append(wrong, errors.New(f.key+": "+f.message))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return open(s, options...), nil
}

func open(s Settings, options ...Option) *Cloud {
	c := &Cloud{settings: s, now: time.Now, byName: map[string]*instance{}, failures: map[string]*provider.Error{}}
	c.faults = newFaults(s)
	for _, option := range options {
		option(c)
	}
	return c
}

// Close takes every instance off its port. The instances stay, but never listen again.
func (c *Cloud) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, i := range c.order {
		i.silence()
	}
	return nil
}
