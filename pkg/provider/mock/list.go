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
	seen := c.view(func(i *instance) bool { return i.Owner == tag && tag != "" && !c.faults.hidden[i.Zone] })
	c.calls.ListPages += max(1, (len(seen)+pageSize-1)/pageSize)
	if c.faults.loses(VerbList) {
		return nil, about(lostReply, VerbList, provider.Ref{Name: tag})
	}
	if len(c.faults.hidden) > 0 {
		return seen, &provider.IncompleteError{Unreachable: slices.Sorted(maps.Keys(c.faults.hidden))}
	}
	return seen, nil
}

// view returns the wanted instances as a listing shows them: as they are now or, when listings lag, as
// they were so many listings ago; none when there were not so many.
func (c *Cloud) view(wanted func(*instance) bool) []provider.Instance {
	if c.faults.lag == 0 {
		c.history = nil
		return c.all(c.now(), wanted)
	}
	c.history = append(c.history, c.all(c.now(), anybodys))
	if drop := len(c.history) - c.faults.lag - 1; drop > 0 {
		c.history = slices.Delete(c.history, 0, drop)
	}
	if len(c.history) <= c.faults.lag {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.history[0]), func(i provider.Instance) bool {
		return !wanted(&instance{Instance: i})
	})
}
