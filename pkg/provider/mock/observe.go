package mock

import (
	"cmp"
	"context"
	"slices"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Verb is one of the four calls of a provider.
type Verb string

// The verbs.
const (
	VerbCreate Verb = "create"
	VerbGet    Verb = "get"
	VerbDelete Verb = "delete"
	VerbList   Verb = "list"
)

// Calls counts what a cloud was asked, whatever became of it.
type Calls struct {
	Create, Get, Delete, List int
	ListPages                 int // pages that a real cloud, with 500 to a page, would have served
}

// Total is the number of calls.
func (n Calls) Total() int { return n.Create + n.Get + n.Delete + n.List }

// Calls returns what the cloud was asked so far.
func (c *Cloud) Calls() Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Made returns how many instances were ever made by Create, those included that never came up.
func (c *Cloud) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// Instances returns every instance that exists now, of all owners and in all states, by name: the
// truth, which no fault touches and no counter notices.
func (c *Cloud) Instances() []provider.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all(c.now(), anybodys)
	slices.SortFunc(all, func(a, b provider.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// begin counts a call and holds it up while the cloud is stalled. It returns the error of an ended
// context.
func (c *Cloud) begin(ctx context.Context, v Verb) error {
	c.mu.Lock()
	switch v {
	case VerbCreate:
		c.calls.Create++
	case VerbGet:
		c.calls.Get++
	case VerbDelete:
		c.calls.Delete++
	case VerbList:
		c.calls.List++
	}
	stalled := c.faults.stalled
	c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if stalled == nil {
		return nil
	}
	select {
	case <-stalled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
