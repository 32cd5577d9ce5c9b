package store

import "crawl.example.com/proxyfleet/pkg/fleet"

// MergeStatus returns have with the named fields taken from want; the other fields stay.
func MergeStatus(have, want fleet.Status, fields StatusFields) fleet.Status {
	switch fields {
	case AllFields:
		return want
	case HealthFields:
		have.Health, have.NextHealth = want.Health, want.NextHealth
		takeConditions(&have.Conditions, want.Conditions, OwnsCondition(HealthFields))
		return have
	}
	want.Health, want.NextHealth = have.Health, have.NextHealth
	conditions := have.Conditions
	takeConditions(&conditions, want.Conditions, OwnsCondition(ReconcileFields))
	want.Conditions = conditions
	return want
}

// OwnsCondition returns which conditions a write of the given fields carries. Ready belongs to both:
// whoever learns first that a Proxy is ready, or is no longer, says so.
func OwnsCondition(fields StatusFields) func(fleet.ConditionType) bool {
	return func(t fleet.ConditionType) bool {
		switch fields {
		case AllFields:
			return true
		case HealthFields:
			return t == fleet.ConditionHealthy || t == fleet.ConditionReady
		}
		return t != fleet.ConditionHealthy
	}
}

// takeConditions replaces the owned conditions of have by those of want.
func takeConditions(have *fleet.Conditions, want fleet.Conditions, owns func(fleet.ConditionType) bool) {
	var out fleet.Conditions
	for _, c := range *have {
		if !owns(c.Type) {
			out = append(out, c)
			continue
		}
		if w, ok := want.Get(c.Type); ok {
			out = append(out, w)
		}
	}
	for _, c := range want {
		if _, there := have.Get(c.Type); !there && owns(c.Type) {
			out = append(out, c)
		}
	}
	*have = out
}
