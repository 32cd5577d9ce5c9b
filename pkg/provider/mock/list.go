package mock

import (
	"context"
	"maps"
	"slices"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// pageSize is how many instances a real cloud puts on a page: only Calls.ListPages knows of it.
const pageSize = 500

// ListByTag returns the instances whose owner is tag, in the order in which they were made.
func (c *Cloud) ListByTag(ctx context.Context, tag string) ([]provider.Instance, error) {
	if err := c.begin(ctx, VerbList); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.faults.next(VerbList); e != nil {
		return nil, about(*e, VerbList, provider.Ref{Name: tag})
	}
	var seen []provider.Instance
	for _, i := range c.lagged(c.all(c.now())) {
		if i.Owner == tag && tag != "" && !c.faults.hidden[i.Zone] {
			seen = append(seen, i)
		}
	}
	c.calls.ListPages += max(1, (len(seen)+pageSize-1)/pageSize)
	if c.faults.loses(VerbList) {
		return nil, about(lostReply, VerbList, provider.Ref{Name: tag})
	}
	if len(c.faults.hidden) > 0 {
		return seen, &provider.IncompleteError{Unreachable: slices.Sorted(maps.Keys(c.faults.hidden))}
	}
	return seen, nil
}

// lagged returns what was all so many listings ago; nothing when there were not so many.
func (c *Cloud) lagged(all []provider.Instance) []provider.Instance {
	if c.faults.lag == 0 {
		c.history = nil
		return all
	}
	c.history = append(c.history, all)
	if drop := len(c.history) - c.faults.lag - 1; drop > 0 {
		c.history = slices.Delete(c.history, 0, drop)
	}
	if len(c.history) <= c.faults.lag {
		return nil
	}
	return c.history[0]
}
