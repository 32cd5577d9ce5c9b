package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// Faulty is a store that fails on request. Methods are named as in the interface; "*" means all.
type Faulty struct {
	store.Store

	mu     sync.Mutex
	refuse map[string]*fault
	lose   map[string]*fault
	delay  map[string]time.Duration
}

type fault struct {
	err   error
	times int // how often still; negative: until further notice
}

// NewFaulty returns s, which fails as soon as it is told to.
func NewFaulty(s store.Store) *Faulty {
	f := &Faulty{}
	f.Mend()
	f.Store = Around(s, f.before, f.after)
	return f
}

// Refuse has the next calls of a method fail with err and without effect; a negative number: all
// calls until it is mended.
func (f *Faulty) Refuse(method string, times int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse[method] = &fault{err, times}
}

// Lose has the next calls of a method that succeed take effect and fail with ErrLost; a negative
// number: all calls until it is mended.
func (f *Faulty) Lose(method string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose[method] = &fault{ErrLost, times}
}

// Delay has calls of a method begin d later. A context that ends meanwhile ends the call.
func (f *Faulty) Delay(method string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay[method] = d
}

// Mend takes all of that back.
func (f *Faulty) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse, f.lose, f.delay = map[string]*fault{}, map[string]*fault{}, map[string]time.Duration{}
}

func (f *Faulty) before(ctx context.Context, c Call) error {
	f.mu.Lock()
	d := max(f.delay[c.Method], f.delay["*"])
	f.mu.Unlock()
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%s %s: %w", c.Method, c.Doc, ctx.Err())
		}
	}
	return f.next(&f.refuse, c)
}

func (f *Faulty) after(_ context.Context, c Call, err error) error {
	if err != nil {
		return nil
	}
	return f.next(&f.lose, c)
}

// next uses up one of the faults in store for a call.
func (f *Faulty) next(faults *map[string]*fault, c Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, method := range []string{c.Method, "*"} {
		if fault := (*faults)[method]; fault != nil && fault.times != 0 {
			fault.times--
			return fmt.Errorf("%s %s: %w", c.Method, c.Doc, fault.err)
		}
	}
	return nil
}
