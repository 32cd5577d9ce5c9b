package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/store"
)

// watched is a mock cloud whose creates and deletes are checked when they take effect.
type watched struct {
	*mock.Cloud
	chaos  *chaos
	name   string
	max    int
	shown  map[string]bool // names in the last listing
	hidden int             // instances too many that nobody could know of
}

// ListByTag remembers what was shown.
func (w *watched) ListByTag(ctx context.Context, tag string) ([]provider.Instance, error) {
	seen, err := w.Cloud.ListByTag(ctx, tag)
	w.shown = map[string]bool{}
	for _, i := range seen {
		w.shown[i.Name] = true
	}
	return seen, err
}

// create makes an instance and checks all that must hold at this moment.
func (w *watched) create(p *player, req provider.CreateRequest) (provider.Instance, error) {
	c := w.chaos
	c.checkFence(p, "create")
	before := w.truth(req.Name)
	made, err := w.Create(own(), req)
	if err != nil {
		return made, err
	}
	if before != nil {
		if _, lost := c.wipedAt[req.UID]; before.Zone != req.Zone && before.State != provider.StateTerminated && !lost {
			c.broken(&c.duplicates, "create of %s in %s while it exists in %s", req.Name, req.Zone, before.Zone)
		}
		return made, err
	}
	c.made[made.Name] = true
	doc, found := c.document(req.UID)
	if found && doc.Status.UID != "" && !names(doc.Status, req.Name) {
		c.broken(&c.duplicates, "create of %s without a recorded intent", req.Name)
	}
	if p.id >= c.wipedAt[req.UID] {
		w.checkWiped(req)
	}
	w.checkAlive(req.UID, doc, found)
	w.checkCap()
	return made, err
}

// checkWiped: a document that lost its status must find its instances again, not get others. One that
// was meant before may be made anew when the cloud takes it back.
func (w *watched) checkWiped(req provider.CreateRequest) {
	c := w.chaos
	had := c.wiped[req.UID]
	if len(had) == 0 || slices.Contains(had, req.Name) || slices.Contains(c.meant[req.UID], req.Name) {
		return
	}
	doc, found := c.document(req.UID)
	for _, name := range had {
		i := w.truth(name)
		if i != nil && isAlive(*i) && found && !names(doc.Status, name) {
			c.broken(&c.duplicates, "after its status was lost, %s was made beside %s", req.Name, name)
		}
	}
}

// checkAlive: never more than the current instance and its successor.
func (w *watched) checkAlive(uid string, doc fleet.Proxy, found bool) {
	alive := 0
	for _, i := range w.Instances() {
		if i.UID == uid && i.Owner == testOwner && isAlive(i) {
			alive++
		}
	}
	if alive > 2 {
		w.chaos.broken(&w.chaos.duplicates, "%d instances of %s (found %v) are alive at once", alive, doc.Name, found)
	}
}

// checkCap: never more instances than the configuration allows. What no document names, no listing
// has shown and no catalog tells of cannot be counted by anybody: somebody removed its document, or
// wiped its status, before the cloud showed it.
func (w *watched) checkCap() {
	if w.max == 0 {
		return
	}
	total, unknowable := 0, 0
	named := w.chaos.namedAnywhere()
	for _, i := range w.Instances() {
		if i.Owner != testOwner {
			continue
		}
		total++
		if !named[i.Name] && !w.shown[i.Name] {
			unknowable++
		}
	}
	switch {
	case total <= w.max:
	case total-unknowable <= w.max:
		w.hidden++
	default:
		w.chaos.broken(&w.chaos.overcap, "%d instances of %s, %d are allowed", total, w.name, w.max)
	}
}

// delete has an instance go and checks that nobody still needs it.
func (w *watched) delete(p *player, ref provider.Ref) error {
	c := w.chaos
	c.checkFence(p, "delete")
	if i := w.truth(ref.Name); i != nil {
		switch {
		case i.Owner != testOwner:
			c.broken(&c.foreign, "delete of %s, which is %q's", i.Name, i.Owner)
		case i.State == provider.StateRunning:
			c.checkLeases(*i)
		}
	}
	return w.Delete(own(), ref)
}

// truth returns the instance as it really is, nil when it does not exist.
func (w *watched) truth(name string) *provider.Instance {
	for _, i := range w.Instances() {
		if i.Name == name {
			return &i
		}
	}
	return nil
}

// checkLeases: no instance goes while a lease on it may be used, unless it has had its time.
func (c *chaos) checkLeases(i provider.Instance) {
	now := time.Now()
	doc, found := c.document(i.UID)
	for id, l := range c.leases {
		if l.uid != i.UID || l.slot.Incarnation != i.Incarnation {
			continue
		}
		s, err := c.store.GetSlot(own(), l.slot.Proxy, l.slot.N)
		if err != nil || s.LeaseID != id || !now.Before(s.ExpireTime) {
			delete(c.leases, id)
			continue
		}
		switch d := doc.Status.Drain; {
		case !found && now.Sub(c.vanished[i.UID]) >= vanishedDrain:
		case found && d != nil && !now.Before(d.Deadline):
		case found && doc.Status.Accepted == nil && !doc.DeleteTime.IsZero():
		default:
			c.broken(&c.cut, "%s of %s was deleted under lease %s until %s (found %v, drain %+v)", i.Name, doc.Name, id, s.ExpireTime, found, d)
		}
	}
}

// checkFence: only the run that holds the lock may change anything.
func (c *chaos) checkFence(p *player, what string) {
	c.mu.Lock()
	calm := c.calm
	c.mu.Unlock()
	if calm {
		return
	}
	if c.holder != p {
		c.broken(&c.unlocked, "%s by run %d while run %d holds the lock", what, p.id, c.holder.id)
	}
}

func names(s fleet.Status, name string) bool {
	return s.Instance != nil && s.Instance.Name == name || s.Next != nil && s.Next.Name == name
}

// document finds the document that has, or is derived to have, a uid.
func (c *chaos) document(uid string) (fleet.Proxy, bool) {
	name, ok := c.uids[uid]
	if !ok {
		return fleet.Proxy{}, false
	}
	p, err := c.store.GetProxy(own(), name)
	if err != nil || c.uidOf(p) != uid {
		return fleet.Proxy{Name: name}, false
	}
	return p, true
}

func (c *chaos) uidOf(p fleet.Proxy) string {
	return fleet.UID(testDatabase, "proxies/"+p.Name, p.CreateTime)
}

func (c *chaos) namedAnywhere() map[string]bool {
	out := map[string]bool{}
	proxies, err := c.store.ListProxies(own())
	if err != nil {
		return out
	}
	for _, p := range proxies {
		for _, i := range []*fleet.Instance{p.Status.Instance, p.Status.Next} {
			if i != nil {
				out[i.Name] = true
			}
		}
	}
	return out
}

// broken notes a broken promise.
func (c *chaos) broken(count *int, format string, args ...any) {
	*count++
	c.faults = append(c.faults, fmt.Sprintf("%s step %d: ", time.Since(c.began), c.step)+fmt.Sprintf(format, args...))
}

// lease is one that the chaos has taken.
type lease struct {
	uid  string
	slot store.Slot
}
