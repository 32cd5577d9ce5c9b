package firestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
		return nil, outage(ctx, "list", colProxies, err)
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
	d, err := get(ctx, "get proxy", s.proxy(name))
	if err != nil {
		return fleet.Proxy{}, err
	}
	return decodeProxy(d), nil
}

func decodeProxy(d *firestore.DocumentSnapshot) fleet.Proxy {
	p := store.DecodeDocument(d.Ref.ID, d.Data())
	p.CreateTime, p.UpdateTime = d.CreateTime.UTC(), d.UpdateTime.UTC()
	p.Status = decodeStatus(d)
	return p
}

// WriteStatus implements store.Proxies.
func (s *Store) WriteStatus(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	result, err := s.proxy(p.Name).Update(ctx, statusUpdates(p.Status, fields), ifVersion(p.UpdateTime))
	if err == nil {
		p.UpdateTime = result.UpdateTime.UTC()
		return p, nil
	}
	err = refused(ctx, "write status of", p.Name, err)
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

// RemoveProxy implements store.Proxies.
func (s *Store) RemoveProxy(ctx context.Context, p fleet.Proxy) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.proxy(p.Name).Delete(ctx, ifVersion(p.UpdateTime))
	err = s.orAbsent(ctx, p.Name, refused(ctx, "remove proxy", p.Name, err))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// orAbsent returns ErrNotFound instead of the error of a write when there is no such document: of
// that Firestore says the same as of one that changed, or of a database that is not there.
func (s *Store) orAbsent(ctx context.Context, name string, err error) error {
	if !errors.Is(err, store.ErrConflict) && status.Code(err) != codes.NotFound && possible(s.proxy(name)) {
		return err
	}
	if _, getErr := s.GetProxy(ctx, name); errors.Is(getErr, store.ErrNotFound) {
		return getErr
	}
	return err
}

// CreateProxy implements store.Operators. It costs a write and a read.
func (s *Store) CreateProxy(ctx context.Context, name string, e store.Edit) (fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	doc := map[string]any{}
	for _, u := range editUpdates(e) {
		doc[u.Path] = u.Value
	}
	if _, err := s.proxy(name).Create(ctx, doc); err != nil {
		return fleet.Proxy{}, refused(ctx, "create proxy", name, err)
	}
	return s.GetProxy(ctx, name)
}

// EditProxy implements store.Operators. It costs a write and a read.
func (s *Store) EditProxy(ctx context.Context, name string, e store.Edit, version time.Time) (fleet.Proxy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	updates := editUpdates(e)
	if len(updates) == 0 {
		return s.unedited(ctx, name, version)
	}
	var conditions []firestore.Precondition
	if !version.IsZero() {
		conditions = append(conditions, ifVersion(version))
	}
	if _, err := s.proxy(name).Update(ctx, updates, conditions...); err != nil {
		return fleet.Proxy{}, s.orAbsent(ctx, name, refused(ctx, "edit proxy", name, err))
	}
	return s.GetProxy(ctx, name)
}

// unedited is an edit that changes nothing, which Firestore does not take.
func (s *Store) unedited(ctx context.Context, name string, version time.Time) (fleet.Proxy, error) {
	p, err := s.GetProxy(ctx, name)
	if err == nil && !version.IsZero() && !p.UpdateTime.Equal(version) {
		return fleet.Proxy{}, fmt.Errorf("edit proxy %s: %w", name, store.ErrConflict)
	}
	return p, err
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

// PutRaw stores a document exactly as given, as somebody might make it by hand; for tests. A status
// that doc does not have is lost.
func (s *Store) PutRaw(ctx context.Context, name string, doc map[string]any) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.proxy(name).Set(ctx, doc)
	return refused(ctx, "put proxy", name, err)
}
