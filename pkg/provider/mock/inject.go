package mock

import (
	"slices"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// InjectCreateFailures has the next n creates refused with class, one of the classes of package
// provider, and make nothing. Injections of one kind queue up.
func (c *Cloud) InjectCreateFailures(n int, class error) { c.InjectFailures(VerbCreate, n, class) }

// InjectFailures has the next n calls of a verb refused with class, without effect.
func (c *Cloud) InjectFailures(v Verb, n int, class error) {
	c.change(func() {
		c.faults.refusals[v] = append(c.faults.refusals[v], slices.Repeat([]provider.Error{refusal(class)}, n)...)
	})
}

func refusal(class error) provider.Error {
	reasons := map[error]string{provider.ErrQuotaExceeded: reasonQuota, provider.ErrPermanent: reasonRefused, provider.ErrTransient: reasonUnavailable}
	return provider.Error{Class: class, Reason: reasons[class]}
}

// InjectLostReplies has the next n calls of a verb that succeed take effect while the caller is told
// of a transient error.
func (c *Cloud) InjectLostReplies(v Verb, n int) { c.change(func() { c.faults.lost[v] += n }) }

// InjectLaunchFailures has the next n instances that are made accepted, and come to nothing when they
// should have booted. Get then tells failure to who has the operation; Name and Zone are filled in.
func (c *Cloud) InjectLaunchFailures(n int, failure provider.Error) {
	c.change(func() { c.faults.launches = append(c.faults.launches, slices.Repeat([]provider.Error{failure}, n)...) })
}

// SetStockOut has exactly these zones without machines; none ends it.
func (c *Cloud) SetStockOut(zones ...string) { c.change(func() { c.faults.out = set(zones) }) }

// HideZones has listings miss exactly these zones and say so; none ends it. Get still sees them.
func (c *Cloud) HideZones(zones ...string) { c.change(func() { c.faults.hidden = set(zones) }) }

// SetListLag has listings show what was n listings ago; 0 ends it.
func (c *Cloud) SetListLag(n int) { c.change(func() { c.faults.lag = n }) }

// SetCapacity has creates refused for want of quota while n instances of any owner exist; 0 ends it.
func (c *Cloud) SetCapacity(n int) { c.change(func() { c.faults.capacity = n }) }

// SetCreateLimit lets n instances be made in any span of window, and tells further creates when to
// come back; 0 ends it.
func (c *Cloud) SetCreateLimit(n int, window time.Duration) {
	c.change(func() { c.faults.limit, c.faults.window = n, window })
}

// Outage has every call fail as transient until end is called.
func (c *Cloud) Outage() (end func()) {
	c.change(func() { c.faults.outages++ })
	return sync.OnceFunc(func() { c.change(func() { c.faults.outages-- }) })
}

// Stall has every call that begins from now on hang until its context ends or end is called.
func (c *Cloud) Stall() (end func()) {
	gate := make(chan struct{})
	c.change(func() { c.faults.stalled = gate })
	return sync.OnceFunc(func() {
		c.change(func() {
			if c.faults.stalled == gate {
				c.faults.stalled = nil
			}
		})
		close(gate)
	})
}

// Preempt stops an instance from outside, as the end of a spot VM does: it goes to terminated and
// keeps its name until it is deleted. It reports whether there was such an instance.
func (c *Cloud) Preempt(name string) (found bool) {
	c.change(func() {
		var i *instance
		now := c.now()
		if i, _, found = c.find(name, now); found {
			i.stop(now)
		}
	})
	return found
}

// Vanish removes an instance from outside, at once and without a trace. It reports whether there was
// such an instance.
func (c *Cloud) Vanish(name string) (found bool) {
	c.change(func() {
		var i *instance
		if i, _, found = c.find(name, c.now()); found {
			i.silence()
			delete(c.byName, name)
			c.order = slices.DeleteFunc(c.order, func(other *instance) bool { return other == i })
		}
	})
	return found
}

// Place puts an instance into the cloud that no Create has asked for, such as a VM of somebody else
// (any Owner, or none) or one that was orphaned long ago (CreateTime; now when zero). It never
// listens, and State and Address are worked out as for any other. It reports whether the name was
// free.
func (c *Cloud) Place(foreign provider.Instance) (placed bool) {
	c.change(func() {
		now := c.now()
		if _, _, taken := c.find(foreign.Name, now); taken {
			return
		}
		if foreign.CreateTime.IsZero() {
			foreign.CreateTime = now
		}
		c.add(&instance{Instance: foreign})
		placed = true
	})
	return placed
}

func (c *Cloud) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}
