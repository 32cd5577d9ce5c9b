package mock

import (
	"context"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Delete begins the end of the instance of that name, whoever's it is.
func (c *Cloud) Delete(ctx context.Context, ref provider.Ref) error {
	if err := c.begin(ctx, VerbDelete); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.faults.next(VerbDelete); e != nil {
		return about(*e, VerbDelete, ref)
	}
	now := c.now()
	if i, _, ok := c.find(ref.Name, now); ok {
		i.failure = nil // what was deleted did not fail
		i.stop(now)
		if i.deleted.IsZero() {
			i.deleted = now
		}
	}
	if c.faults.loses(VerbDelete) {
		return about(lostReply, VerbDelete, ref)
	}
	return nil
}
