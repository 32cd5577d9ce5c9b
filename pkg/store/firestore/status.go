package firestore

import (
	"time"

	"cloud.google.com/go/firestore"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// A status is stored with its conditions as a map by type, so that two writers can each write theirs.

// decodeStatus returns the status of a document. A part that cannot be read is a lost one, and is
// rebuilt by its owner.
func decodeStatus(d *firestore.DocumentSnapshot) fleet.Status {
	var doc struct {
		Status struct {
			fleet.Status
			Conditions map[string]fleet.Condition `firestore:"conditions"`
		} `firestore:"status"`
	}
	if d.DataTo(&doc) != nil {
		return decodeParts(d)
	}
	s := doc.Status.Status
	s.Conditions = conditionList(func(t fleet.ConditionType) (fleet.Condition, bool) {
		c, ok := doc.Status.Conditions[string(t)]
		return c, ok
	})
	return s
}

// decodeParts reads the part of each owner by itself: were one of them lost for what the other cannot
// mend, it would stay lost whatever is written.
func decodeParts(d *firestore.DocumentSnapshot) fleet.Status {
	var s fleet.Status
	var reconcile struct {
		Status struct {
			fleet.Status
			Health     any `firestore:"health"`
			NextHealth any `firestore:"nextHealth"`
			Conditions any `firestore:"conditions"`
		} `firestore:"status"`
	}
	if d.DataTo(&reconcile) == nil {
		s = reconcile.Status.Status
	}
	var health struct {
		Status struct {
			Health     fleet.Health `firestore:"health"`
			NextHealth fleet.Health `firestore:"nextHealth"`
		} `firestore:"status"`
	}
	if d.DataTo(&health) == nil {
		s.Health, s.NextHealth = health.Status.Health, health.Status.NextHealth
	}
	conditions := field[map[string]any](field[map[string]any](d.Data(), store.FieldStatus), "conditions")
	s.Conditions = conditionList(func(t fleet.ConditionType) (fleet.Condition, bool) {
		c, ok := conditions[string(t)].(map[string]any)
		return fleet.Condition{
			Status: field[bool](c, "status"), Reason: field[string](c, "reason"), Message: field[string](c, "message"),
			LastTransitionTime: field[time.Time](c, "lastTransitionTime"),
		}, ok
	})
	return s
}

func conditionList(get func(fleet.ConditionType) (fleet.Condition, bool)) fleet.Conditions {
	var out fleet.Conditions
	for _, t := range store.ConditionTypes() {
		if c, ok := get(t); ok {
			c.Type = t
			out = append(out, c)
		}
	}
	return out
}

// statusUpdates lists the owned fields of a status one by one: an empty field is deleted, and nothing
// else is touched.
func statusUpdates(st fleet.Status, fields store.StatusFields) []firestore.Update {
	var updates []firestore.Update
	set := func(value any, present bool, path ...string) {
		if !present {
			value = firestore.Delete
		}
		updates = append(updates, firestore.Update{FieldPath: append(firestore.FieldPath{store.FieldStatus}, path...), Value: value})
	}
	if fields != store.HealthFields {
		set(st.UID, st.UID != "", "uid")
		set(st.Phase, st.Phase != "", "phase")
		set(st.Accepted, st.Accepted != nil, "accepted")
		set(st.Incarnation, st.Incarnation != 0, "incarnation")
		set(st.Instance, st.Instance != nil, "instance")
		set(st.Next, st.Next != nil, "next")
		set(st.Endpoint, st.Endpoint != nil, "endpoint")
		set(st.Drain, st.Drain != nil, "drain")
		set(st.Replacing, st.Replacing != "", "replacing")
		set(st.Retry, st.Retry != nil, "retry")
		set(st.Events, len(st.Events) > 0, "events")
	}
	if fields != store.ReconcileFields {
		set(st.Health, true, "health")
		set(st.NextHealth, true, "nextHealth")
	}
	owns := store.OwnsCondition(fields)
	for _, t := range store.ConditionTypes() {
		if owns(t) {
			c, ok := st.Conditions.Get(t)
			set(c, ok, "conditions", string(t))
		}
	}
	return updates
}
