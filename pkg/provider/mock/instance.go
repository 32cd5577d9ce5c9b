package mock

import (
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// instance is what the cloud knows of one VM. Times that are zero have not come.
type instance struct {
	provider.Instance // as it was asked for; State and Address are worked out when it is looked at
	port              int32
	credentials       string // that its proxy asks for; empty for none

	stopped time.Time       // when it began to stop, by a delete or from outside
	deleted time.Time       // when its removal was asked for first
	failure *provider.Error // its launch will fail with this; nil otherwise

	listener *listener // the port that it serves; nil while it serves none
}

// stateAt is the whole life of an instance as a function of the time; exists is false before nothing
// and after everything.
func (i *instance) stateAt(now time.Time, s Settings) (state provider.State, exists bool) {
	booted := !now.Before(i.CreateTime.Add(s.ProvisionDelay))
	if i.failure != nil && booted {
		return "", false
	}
	if i.stopped.IsZero() {
		if booted {
			return provider.StateRunning, true
		}
		return provider.StateProvisioning, true
	}
	end := i.stopped.Add(s.StopDelay)
	if now.Before(end) {
		return provider.StateStopping, true
	}
	if i.deleted.IsZero() {
		return provider.StateTerminated, true
	}
	if i.deleted.After(end) {
		end = i.deleted
	}
	return provider.StateTerminated, now.Before(end.Add(s.PurgeDelay))
}

// look returns the instance as it is now, after putting it on its port or taking it off. One that
// cannot have its port is still provisioning: it has not come up.
func (c *Cloud) look(i *instance, now time.Time) (seen provider.Instance, exists bool) {
	state, exists := i.stateAt(now, c.settings)
	if state != provider.StateRunning || !exists {
		i.silence()
	} else if !c.silent && !c.closed && i.listener == nil && i.port != 0 {
		l, err := acquire(i.port, i.credentials)
		if err != nil {
			state = provider.StateProvisioning
		}
		i.listener = l
	}
	seen = i.Instance
	seen.State = state
	if state == provider.StateRunning {
		seen.Address = host
		seen.Operation = ""
	}
	return seen, exists
}

// silence takes the instance off its port.
func (i *instance) silence() {
	if i.listener != nil {
		i.listener.release(i.credentials)
		i.listener = nil
	}
}

// stop begins its end. A second time changes nothing.
func (i *instance) stop(now time.Time) {
	if i.stopped.IsZero() {
		i.stopped = now
	}
	i.silence()
}

// find returns the instance of that name if it exists now. What has ceased to exist is forgotten.
func (c *Cloud) find(name string, now time.Time) (i *instance, seen provider.Instance, ok bool) {
	i = c.byName[name]
	if i == nil {
		return nil, provider.Instance{}, false
	}
	seen, exists := c.look(i, now)
	if !exists {
		c.forget(i)
		return nil, provider.Instance{}, false
	}
	return i, seen, true
}

// forget drops an instance that has ceased to exist from the index, and keeps why its launch failed.
// all drops it from the order.
func (c *Cloud) forget(i *instance) {
	if c.byName[i.Name] == i {
		delete(c.byName, i.Name)
	}
	if i.failure != nil {
		c.failures[i.Operation] = i.failure
	}
}

// all returns every instance that exists now and is wanted, in the order in which they were made.
func (c *Cloud) all(now time.Time, wanted func(*instance) bool) []provider.Instance {
	seen := make([]provider.Instance, 0, len(c.order))
	kept := c.order[:0]
	for _, i := range c.order {
		s, exists := c.look(i, now)
		if !exists {
			c.forget(i)
			continue
		}
		kept = append(kept, i)
		if wanted(i) {
			seen = append(seen, s)
		}
	}
	clear(c.order[len(kept):])
	c.order = kept
	return seen
}

func anybodys(*instance) bool { return true }
