package store

import (
	"reflect"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

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

// ConditionTypes returns every type of condition, in the order in which stores return them.
func ConditionTypes() []fleet.ConditionType {
	return []fleet.ConditionType{
		fleet.ConditionAccepted, fleet.ConditionProvisioned, fleet.ConditionHealthy, fleet.ConditionReady, fleet.ConditionExitAddressShared,
	}
}

// HasStatus reports whether writing the fields of want over have would change nothing: so a write that
// was repeated by the client, and conflicts with itself, is known.
func HasStatus(have, want fleet.Status, fields StatusFields) bool {
	return reflect.DeepEqual(NormalStatus(have), NormalStatus(MergeStatus(have, want, fields)))
}

// NormalStatus returns s in the form in which all stores give it back, so that statuses can be compared:
// times in UTC microseconds, conditions in the order of ConditionTypes, empty lists nil.
func NormalStatus(s fleet.Status) fleet.Status {
	s = s.Clone()
	for _, i := range []*fleet.Instance{s.Instance, s.Next} {
		if i != nil {
			normalTimes(&i.IntentTime, &i.CreateTime)
		}
	}
	if s.Endpoint != nil {
		normalTimes(&s.Endpoint.Since)
	}
	if s.Drain != nil {
		normalTimes(&s.Drain.Since, &s.Drain.Deadline)
	}
	if s.Retry != nil {
		normalTimes(&s.Retry.NotBefore)
	}
	for _, h := range []*fleet.Health{&s.Health, &s.NextHealth} {
		normalTimes(&h.Tick, &h.LastProbeTime, &h.UnhealthySince)
	}
	for i := range s.Events {
		normalTimes(&s.Events[i].Time)
	}
	order := ConditionTypes()
	slices.SortStableFunc(s.Conditions, func(a, b fleet.Condition) int {
		return slices.Index(order, a.Type) - slices.Index(order, b.Type)
	})
	for i := range s.Conditions {
		normalTimes(&s.Conditions[i].LastTransitionTime)
	}
	if len(s.Events) == 0 {
		s.Events = nil
	}
	if len(s.Conditions) == 0 {
		s.Conditions = nil
	}
	return s
}

func normalTimes(times ...*time.Time) {
	for _, t := range times {
		*t = t.UTC().Truncate(time.Microsecond)
	}
}
