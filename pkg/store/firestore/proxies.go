package firestore

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/firestore"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (s *Store) proxy(name string) *firestore.DocumentRef {
	return s.client.Collection(colProxies).Doc(name)
}

// ListProxies implements store.Proxies.
func (s *Store) ListProxies(ctx context.Context) ([]fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	docs, err := s.client.Collection(colProxies).OrderBy(firestore.DocumentID, firestore.Asc).Documents(ctx).GetAll()
	if err != nil {
		return nil, failure(ctx, "list", colProxies, err)
	}
	out := make([]fleet.Proxy, len(docs))
	for i, d := range docs {
		out[i] = decodeProxy(d)
	}
	return out, nil
}

// GetProxy implements store.Proxies.
func (s *Store) GetProxy(ctx context.Context, name string) (fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	d, err := s.proxy(name).Get(ctx)
	if err != nil {
		return fleet.Proxy{}, failure(ctx, "get proxy", name, err)
	}
	return decodeProxy(d), nil
}

// statusDocument is a status as it is stored: conditions are a map, so that two writers can each
// write theirs.
type statusDocument struct {
	fleet.Status
	Conditions map[string]fleet.Condition `firestore:"conditions"`
}

func decodeProxy(d *firestore.DocumentSnapshot) fleet.Proxy {
	p := store.DecodeDocument(d.Ref.ID, d.Data())
	p.CreateTime, p.UpdateTime = d.CreateTime.UTC(), d.UpdateTime.UTC()
	var doc struct {
		Status statusDocument `firestore:"status"`
	}
	if d.DataTo(&doc) != nil {
		return p // a status that cannot be read is a lost one, and is rebuilt
	}
	p.Status = doc.Status.Status
	p.Status.Conditions = conditionList(doc.Status.Conditions)
	return p
}

// conditionOrder is how people see conditions.
var conditionOrder = []fleet.ConditionType{
	fleet.ConditionAccepted, fleet.ConditionProvisioned, fleet.ConditionHealthy, fleet.ConditionReady, fleet.ConditionExitAddressShared,
}

func conditionList(m map[string]fleet.Condition) fleet.Conditions {
	var out fleet.Conditions
	for _, t := range conditionOrder {
		if c, ok := m[string(t)]; ok {
			c.Type = t
			out = append(out, c)
		}
	}
	return out
}

// WriteStatus implements store.Proxies.
func (s *Store) WriteStatus(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	result, err := s.proxy(p.Name).Update(ctx, statusUpdates(p.Status, fields), firestore.LastUpdateTime(p.UpdateTime))
	if err == nil {
		p.UpdateTime = result.UpdateTime.UTC()
		return p, nil
	}
	err = failure(ctx, "write status of", p.Name, err)
	if !errors.Is(err, store.ErrConflict) {
		return p, err
	}
	// The client may have repeated a commit whose answer was lost: then the document is as we want it.
	have, getErr := s.GetProxy(ctx, p.Name)
	if getErr == nil && store.HasStatus(have.Status, p.Status, fields) {
		return have, nil
	}
	return p, err
}

// statusUpdates lists the owned fields of a status one by one: a nil field is deleted, and nothing
// else is touched.
func statusUpdates(st fleet.Status, fields store.StatusFields) []firestore.Update {
	var updates []firestore.Update
	set := func(path string, value any, present bool) {
		if !present {
			value = firestore.Delete
		}
		updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{"status", path}, Value: value})
	}
	if fields != store.HealthFields {
		set("uid", st.UID, st.UID != "")
		set("phase", st.Phase, st.Phase != "")
		set("accepted", st.Accepted, st.Accepted != nil)
		set("incarnation", st.Incarnation, st.Incarnation != 0)
		set("instance", st.Instance, st.Instance != nil)
		set("next", st.Next, st.Next != nil)
		set("endpoint", st.Endpoint, st.Endpoint != nil)
		set("drain", st.Drain, st.Drain != nil)
		set("replacing", st.Replacing, st.Replacing != "")
		set("retry", st.Retry, st.Retry != nil)
		set("events", st.Events, len(st.Events) > 0)
	}
	if fields != store.ReconcileFields {
		set("health", st.Health, true)
		set("nextHealth", st.NextHealth, true)
	}
	owns := store.OwnsCondition(fields)
	for _, t := range conditionOrder {
		if !owns(t) {
			continue
		}
		var value any = firestore.Delete
		if c, ok := st.Conditions.Get(t); ok {
			value = c
		}
		updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{"status", "conditions", string(t)}, Value: value})
	}
	return updates
}

// RemoveProxy implements store.Proxies.
func (s *Store) RemoveProxy(ctx context.Context, p fleet.Proxy) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.proxy(p.Name).Delete(ctx, firestore.LastUpdateTime(p.UpdateTime))
	err = failure(ctx, "remove proxy", p.Name, err)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		if _, getErr := s.GetProxy(ctx, p.Name); errors.Is(getErr, store.ErrNotFound) {
			return nil
		}
	}
	return err
}

// CreateProxy implements store.Operators.
func (s *Store) CreateProxy(ctx context.Context, name string, e store.Edit) (fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	doc := map[string]any{}
	for _, u := range editUpdates(e) {
		doc[u.Path] = u.Value
	}
	if _, err := s.proxy(name).Create(ctx, doc); err != nil {
		return fleet.Proxy{}, failure(ctx, "create proxy", name, err)
	}
	return s.GetProxy(ctx, name)
}

// EditProxy implements store.Operators.
func (s *Store) EditProxy(ctx context.Context, name string, e store.Edit, ifVersion time.Time) (fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var conditions []firestore.Precondition
	if !ifVersion.IsZero() {
		conditions = append(conditions, firestore.LastUpdateTime(ifVersion))
	}
	if updates := editUpdates(e); len(updates) > 0 {
		if _, err := s.proxy(name).Update(ctx, updates, conditions...); err != nil {
			return fleet.Proxy{}, s.editFailure(ctx, name, failure(ctx, "edit proxy", name, err))
		}
	}
	return s.GetProxy(ctx, name)
}

// editFailure tells a document that is gone from one that changed: Firestore says the same of both.
func (s *Store) editFailure(ctx context.Context, name string, err error) error {
	if errors.Is(err, store.ErrConflict) {
		if _, getErr := s.GetProxy(ctx, name); errors.Is(getErr, store.ErrNotFound) {
			return getErr
		}
	}
	return err
}

func editUpdates(e store.Edit) []firestore.Update {
	var updates []firestore.Update
	if e.Labels != nil {
		updates = append(updates, firestore.Update{Path: store.FieldLabels, Value: e.Labels})
	}
	if e.Spec != nil {
		updates = append(updates, firestore.Update{Path: store.FieldSpec, Value: e.Spec})
	}
	if !e.DeleteTime.IsZero() {
		updates = append(updates, firestore.Update{Path: store.FieldDeleteTime, Value: micros(e.DeleteTime)})
	}
	if !e.RotateTime.IsZero() {
		updates = append(updates, firestore.Update{Path: store.FieldRotateTime, Value: micros(e.RotateTime)})
	}
	return updates
}

// PutRaw stores a document exactly as given, as somebody might edit it by hand; for tests.
func (s *Store) PutRaw(ctx context.Context, name string, doc map[string]any) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.proxy(name).Set(ctx, doc)
	return failure(ctx, "put", name, err)
}
