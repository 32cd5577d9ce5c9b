package reconcile

import (
	"maps"
	"slices"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// removeInstance decides, or repeats, the deletion of an instance that the status names.
func (p *planner) removeInstance(i *fleet.Instance) {
	i.Deleting = true
	p.remove(provider.Ref{Name: i.Name, Zone: i.Zone, Operation: i.Operation})
}

// remove has an instance go unless it was asked already, or the cloud has just refused to.
func (p *planner) remove(ref provider.Ref) {
	if p.Facts[ref.Name].Deleted {
		return
	}
	if r := p.s.Retry; r != nil && r.Reason == reasonDelete && p.Now.Before(r.NotBefore) {
		return
	}
	p.actions = append(p.actions, Action{Verb: Delete, Ref: ref})
}

// noteDeleteFailures records what the last deletes were answered with.
func (p *planner) noteDeleteFailures() {
	for _, name := range slices.Sorted(maps.Keys(p.Facts)) {
		f := p.Facts[name]
		if f.DeleteErr == nil {
			continue
		}
		p.event(EventDeleteFailed, clip(f.DeleteErr.Error(), 512))
		old := p.s.Retry
		if old != nil && old.Reason != reasonDelete {
			continue // a create waits as well, and that weighs more
		}
		r := &fleet.Retry{Attempts: 1, Class: className(f.DeleteErr), Reason: reasonDelete, Message: clip(name+": "+f.DeleteErr.Error(), 512)}
		if old != nil {
			r.Attempts += old.Attempts
		}
		_, after := details(f.DeleteErr)
		// Whatever the class: what must go must go, so it is tried again at least every five minutes.
		r.NotBefore = p.Now.Add(backOff(classTransient, r.Attempts, p.Jitter, after))
		p.s.Retry = r
	}
}
