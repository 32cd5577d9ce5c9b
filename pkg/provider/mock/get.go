package mock

import (
	"context"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Get returns the instance of that name. Of a launch that failed it tells when ref carries the
// operation that Create returned.
func (c *Cloud) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	if err := c.begin(ctx, VerbGet); err != nil {
		return provider.Instance{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.faults.next(VerbGet); e != nil {
		return provider.Instance{}, about(*e, VerbGet, ref)
	}
	_, seen, ok := c.find(ref.Name, c.now())
	if !ok {
		absent := provider.Error{Class: provider.ErrNotFound}
		if failure := c.failures[ref.Operation]; failure != nil && failure.Name == ref.Name {
			absent.Err = failure
		}
		return provider.Instance{}, about(absent, VerbGet, ref)
	}
	if c.faults.loses(VerbGet) {
		return provider.Instance{}, about(lostReply, VerbGet, ref)
	}
	return seen, nil
}
