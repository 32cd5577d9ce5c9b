package reconcile

import (
	"slices"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// sight is what is known of an instance that the status names.
type sight int

const (
	unasked sight = iota // not listed, which shows nothing
	unsure               // the cloud did not answer
	absent               // it does not exist
	foreign              // somebody else's bears its name
	seen
)

// look finds out what is known of i, asks for what is not, and takes over what was seen.
func (p *planner) look(i *fleet.Instance) sight {
	f := p.Facts[i.Name]
	switch {
	case f.Seen != nil && !p.isOurs(*f.Seen):
		return foreign
	case f.Seen == nil && f.Absent:
		return absent
	case f.Seen == nil && f.GetErr != nil:
		return unsure
	}
	found, ok := p.owned[i.Name]
	if !ok && p.isSilent(i) && i.State == string(provider.StateRunning) && !i.Deleting && p.Proxy.DeleteTime.IsZero() {
		return unsure // the cloud has trouble enough, and nothing waits for this answer
	}
	if !ok {
		p.want(provider.Ref{Name: i.Name, Zone: i.Zone, Operation: i.Operation})
		return unasked
	}
	if isBehind(found.State, provider.State(i.State)) && !p.confirmed(found) {
		return unsure // listings can be older than what was seen before
	}
	i.State, i.Address = string(found.State), found.Address
	if found.Zone != "" {
		i.Zone = found.Zone
	}
	if found.SpecHash != "" {
		i.SpecHash = found.SpecHash
	}
	if found.Operation != "" || found.State == provider.StateRunning {
		i.Operation = found.Operation
	}
	if !found.CreateTime.IsZero() {
		i.CreateTime = canonical(found.CreateTime)
	}
	return seen
}

// isSilent reports whether the listing had no answer from where i is.
func (p *planner) isSilent(i *fleet.Instance) bool { return p.Cloud.BrokeOff || p.Cloud.Silent[i.Zone] }

// want asks for a direct look at an instance, once.
func (p *planner) want(ref provider.Ref) {
	same := func(r provider.Ref) bool { return r.Name == ref.Name }
	if !slices.ContainsFunc(p.ask.Get, same) {
		p.ask.Get = append(p.ask.Get, ref)
	}
}

// isBehind reports whether an instance that was in state known cannot be in state shown any more, unless
// the cloud mends it.
func isBehind(shown, known provider.State) bool {
	life := []provider.State{provider.StateProvisioning, provider.StateRunning, provider.StateStopping, provider.StateTerminated}
	return slices.Contains(life, shown) && slices.Index(life, shown) < slices.Index(life, known)
}

// refusal returns the error that the last create of i was answered with, if that is all that is
// known of it.
func (p *planner) refusal(i *fleet.Instance) error {
	f := p.Facts[i.Name]
	if f.CreateErr == nil || f.Seen != nil {
		return nil
	}
	if reason, _ := details(f.CreateErr); reason == provider.ReasonNameConflict {
		switch {
		case f.Absent: // whoever had the name gave it up meanwhile
			return vanished(i.Name)
		case f.GetErr != nil:
			return f.GetErr
		}
		// It may be ours, with another spec: look whose it is.
		p.want(provider.Ref{Name: i.Name, Zone: i.Zone})
	}
	return f.CreateErr
}
