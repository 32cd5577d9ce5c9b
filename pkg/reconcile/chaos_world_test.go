package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/store"
)

// hands do to a store what people do by hand.
type hands interface {
	store.Store
	wipe(name string)
	remove(name string)
}

// happen lets one thing happen in the world around the runs.
func (c *chaos) happen() {
	events := []func(){
		c.edit, c.edit, c.edit, c.addProxy, c.askDelete, c.vanish, c.wipe, c.spoil, c.rotate,
		c.preempt, c.lose, c.launchFailures, c.refusals, c.stockOut, c.hideZones, c.lag, c.capacity, c.outage,
		c.acquire, c.acquire, c.acquire, c.acquire, c.release, c.judge, c.judge, c.judge, c.deleteCatalog,
	}
	n := c.rng.IntN(len(events))
	c.trace("event %d", n)
	events[n]()
}

func (c *chaos) pickName() string { return c.names[c.rng.IntN(len(c.names))] }

func (c *chaos) cloud() *watched { return c.clouds[c.rng.IntN(len(c.clouds))] }

// randomSpec varies what makes another VM, and what does not.
func (c *chaos) randomSpec(provider string) map[string]any {
	s := map[string]any{
		"mode": "Managed", "provider": provider,
		"placement": map[string]any{"region": "r1", "zones": []any{"r1-a", "r1-b"}, "machineType": []string{"small", "big"}[c.rng.IntN(2)]},
		"maxLeases": c.rng.IntN(5),
		"paused":    c.rng.IntN(12) == 0,
		"lifecycle": map[string]any{
			"drainTimeout": []string{"0s", "2m", "10m"}[c.rng.IntN(3)], "replaceUnhealthyAfter": []string{"2m", "10m"}[c.rng.IntN(2)],
			"maxAge": []string{"0s", "0s", "30m"}[c.rng.IntN(3)], "provisionTimeout": []string{"1m", "10m"}[c.rng.IntN(2)],
		},
	}
	return s
}

func (c *chaos) addProxy() {
	name := c.pickName()
	p, err := c.store.CreateProxy(own(), name, store.Edit{Spec: c.randomSpec(c.cloud().name)})
	if err == nil {
		c.uids[c.uidOf(p)] = name
	}
}

func (c *chaos) edit() {
	name := c.pickName()
	p, err := c.store.GetProxy(own(), name)
	if err != nil || p.Spec.Provider == "" {
		c.addProxy()
		return
	}
	_, _ = c.store.EditProxy(own(), name, store.Edit{Spec: c.randomSpec(p.Spec.Provider)}, time.Time{})
}

func (c *chaos) askDelete() {
	_, _ = c.store.EditProxy(own(), c.pickName(), store.Edit{DeleteTime: time.Now()}, time.Time{})
}

func (c *chaos) rotate() {
	_, _ = c.store.EditProxy(own(), c.pickName(), store.Edit{RotateTime: time.Now()}, time.Time{})
}

// vanish removes a document by hand. Many at once would rightly freeze the sweep.
func (c *chaos) vanish() {
	p, err := c.store.GetProxy(own(), c.pickName())
	if err != nil || len(c.vanished) >= 2 {
		return
	}
	c.vanished[c.uidOf(p)] = time.Now()
	c.store.remove(p.Name)
}

func (c *chaos) wipe() {
	p, err := c.store.GetProxy(own(), c.pickName())
	if err != nil || p.Status.UID == "" {
		return
	}
	uid := c.uidOf(p)
	c.wipedAt[uid] = len(c.players)
	for _, w := range c.clouds {
		for _, i := range w.Instances() {
			if i.UID == uid && isAlive(i) && c.inCatalog(p.Name, i.Incarnation) {
				c.wiped[uid] = append(c.wiped[uid], i.Name)
			}
		}
	}
	for _, i := range []*fleet.Instance{p.Status.Instance, p.Status.Next} {
		if i != nil {
			c.meant[uid] = append(c.meant[uid], i.Name)
		}
	}
	c.trace("wipe %s: %v", p.Name, c.wiped[uid])
	c.store.wipe(p.Name)
}

// inCatalog reports whether the catalog tells of an incarnation: only then can it be found again
// while listings lag.
func (c *chaos) inCatalog(name string, incarnation int64) bool {
	shards, err := c.store.ReadCatalog(own())
	if err != nil {
		return false
	}
	at, ok := places(shards)[name]
	return ok && at.entry.Incarnation == incarnation
}

func (c *chaos) spoil() {
	name := c.pickName()
	if p, err := c.store.GetProxy(own(), name); err == nil && p.Spec.Provider != "" {
		s := c.randomSpec(p.Spec.Provider)
		s["maxLeases"] = "many"
		_, _ = c.store.EditProxy(own(), name, store.Edit{Spec: s}, time.Time{})
		c.spoilt[name] = p.Spec.Provider
	}
}

func (c *chaos) anyInstance() (w *watched, name string) {
	w = c.cloud()
	all := w.Instances()
	if len(all) == 0 {
		return w, ""
	}
	i := all[c.rng.IntN(len(all))]
	if i.Owner != testOwner {
		return w, ""
	}
	return w, i.Name
}

func (c *chaos) preempt() {
	if w, name := c.anyInstance(); name != "" {
		w.Preempt(name)
	}
}

func (c *chaos) lose() {
	if w, name := c.anyInstance(); name != "" && c.rng.IntN(2) == 0 {
		w.Vanish(name)
	}
}

func (c *chaos) launchFailures() {
	failures := []provider.Error{
		{Class: provider.ErrQuotaExceeded, Reason: "QUOTA_EXCEEDED"}, {Class: provider.ErrQuotaExceeded, Reason: "STOCK", StockOut: true},
		{Class: provider.ErrPermanent, Reason: "NOPE"}, {Class: provider.ErrTransient, Reason: "INTERNAL"},
	}
	c.cloud().InjectLaunchFailures(1, failures[c.rng.IntN(len(failures))])
}

func (c *chaos) refusals() {
	classes := []error{provider.ErrQuotaExceeded, provider.ErrTransient, provider.ErrPermanent}
	verbs := []mock.Verb{mock.VerbCreate, mock.VerbCreate, mock.VerbDelete, mock.VerbGet}
	c.cloud().InjectFailures(verbs[c.rng.IntN(len(verbs))], 1+c.rng.IntN(2), classes[c.rng.IntN(len(classes))])
}

func (c *chaos) stockOut() {
	zones := [][]string{nil, {"r1-a"}, {"r1-b"}, {"r1-a", "r1-b"}}
	c.cloud().SetStockOut(zones[c.rng.IntN(len(zones))]...)
}

func (c *chaos) hideZones() {
	zones := [][]string{nil, {"r1-a"}, {"r1-a", "r1-b"}}
	c.cloud().HideZones(zones[c.rng.IntN(len(zones))]...)
}

func (c *chaos) lag() { c.cloud().SetListLag(c.rng.IntN(5)) }

func (c *chaos) capacity() { c.cloud().SetCapacity(c.rng.IntN(6)) }

func (c *chaos) outage() {
	if c.endOutage != nil {
		c.endOutage()
		c.endOutage = nil
		return
	}
	c.endOutage = c.cloud().Outage()
}

func (c *chaos) deleteCatalog() {
	if c.rng.IntN(4) > 0 {
		return
	}
	shards, err := c.store.ReadCatalog(own())
	if err != nil || len(shards) == 0 {
		return
	}
	_, _ = c.store.WriteShard(own(), shards[0], nil, slices.Collect(maps.Keys(shards[0].Entries)))
	c.trace("the catalog is deleted")
	clear(c.wiped) // with status and catalog lost, a lagging listing is all there is
}

// acquire takes a lease as the lease function would, by a copy of the catalog that may be 5 s old.
func (c *chaos) acquire() {
	if time.Since(c.copied) > 5*time.Second || c.rng.IntN(3) == 0 {
		shards, err := c.store.ReadCatalog(own())
		if err != nil {
			return
		}
		c.copied, c.copy = time.Now(), places(shards)
	}
	var ready []string
	for _, name := range slices.Sorted(maps.Keys(c.copy)) {
		if e := c.copy[name].entry; e.Ready() && e.Capacity > 0 {
			ready = append(ready, name)
		}
	}
	if len(ready) == 0 {
		return
	}
	name := ready[c.rng.IntN(len(ready))]
	at := c.copy[name]
	p, err := c.store.GetProxy(own(), name)
	if err != nil {
		return
	}
	c.leased++
	ttl := time.Duration(30+c.rng.IntN(900)) * time.Second
	s := store.Slot{
		Proxy: name, N: c.rng.IntN(int(at.entry.Capacity)), LeaseID: fmt.Sprint("lease-", c.leased), Incarnation: at.entry.Incarnation,
		AcquireTime: time.Now(), ExpireTime: time.Now().Add(ttl),
	}
	if _, err := c.store.CreateSlot(own(), s, nil); err == nil {
		c.leases[s.LeaseID] = lease{uid: c.uidOf(p), slot: s}
		c.checkCapacity(at.entry, s)
	}
}

// checkCapacity: with the new lease there are no more than the entry allows in all.
func (c *chaos) checkCapacity(e fleet.Entry, taken store.Slot) {
	slots, err := c.store.ProxySlots(own(), taken.Proxy)
	if err != nil {
		return
	}
	live := 0
	for _, s := range slots {
		if time.Now().Before(s.ExpireTime) {
			live++
		}
	}
	if live > int(e.MaxLeases) {
		c.broken(&c.overleased, "%d leases on %s, which allows %d", live, taken.Proxy, e.MaxLeases)
	}
}

func (c *chaos) release() {
	ids := slices.Sorted(maps.Keys(c.leases))
	if len(ids) == 0 {
		return
	}
	id := ids[0]
	if s, err := c.store.GetSlot(own(), c.leases[id].slot.Proxy, c.leases[id].slot.N); err == nil && s.LeaseID == id {
		_ = c.store.DeleteSlot(own(), s)
	}
	delete(c.leases, id)
}

// judge writes verdicts as the health function would.
func (c *chaos) judge() {
	sick := ""
	if c.rng.IntN(3) == 0 {
		sick = c.pickName()
	}
	c.judgeAll(sick)
}
