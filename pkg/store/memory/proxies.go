package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (d *document) get() fleet.Proxy {
	p := d.proxy
	p.Labels = maps.Clone(p.Labels)
	p.Broken = slices.Clone(p.Broken)
	p.Status = d.status.Clone()
	return p
}

// ListProxies implements store.Proxies.
func (s *Store) ListProxies(ctx context.Context) ([]fleet.Proxy, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := make([]fleet.Proxy, 0, len(s.proxies))
	for _, d := range s.proxies {
		out = append(out, d.get())
	}
	slices.SortFunc(out, func(a, b fleet.Proxy) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// GetProxy implements store.Proxies.
func (s *Store) GetProxy(ctx context.Context, name string) (fleet.Proxy, error) {
	if err := s.lock(ctx); err != nil {
		return fleet.Proxy{}, err
	}
	defer s.mu.Unlock()
	d, ok := s.proxies[name]
	if !ok {
		return fleet.Proxy{}, store.ErrNotFound
	}
	return d.get(), nil
}

// WriteStatus implements store.Proxies.
func (s *Store) WriteStatus(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error) {
	if err := s.lock(ctx); err != nil {
		return p, err
	}
	defer s.mu.Unlock()
	d, ok := s.proxies[p.Name]
	if !ok || !d.proxy.UpdateTime.Equal(p.UpdateTime) {
		if ok && store.HasStatus(d.status, p.Status, fields) {
			return d.get(), nil
		}
		return p, store.ErrConflict
	}
	d.status = store.MergeStatus(d.status, p.Status.Clone(), fields)
	d.proxy.UpdateTime = s.commit()
	return d.get(), nil
}

// RemoveProxy implements store.Proxies.
func (s *Store) RemoveProxy(ctx context.Context, p fleet.Proxy) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	d, ok := s.proxies[p.Name]
	if ok && !d.proxy.UpdateTime.Equal(p.UpdateTime) {
		return store.ErrConflict
	}
	delete(s.proxies, p.Name)
	return nil
}

// CreateProxy implements store.Operators.
func (s *Store) CreateProxy(ctx context.Context, name string, e store.Edit) (fleet.Proxy, error) {
	if err := s.lock(ctx); err != nil {
		return fleet.Proxy{}, err
	}
	defer s.mu.Unlock()
	if _, ok := s.proxies[name]; ok {
		return fleet.Proxy{}, store.ErrExists
	}
	return s.put(name, edited(map[string]any{}, e)).get(), nil
}

// EditProxy implements store.Operators.
func (s *Store) EditProxy(ctx context.Context, name string, e store.Edit, ifVersion time.Time) (fleet.Proxy, error) {
	if err := s.lock(ctx); err != nil {
		return fleet.Proxy{}, err
	}
	defer s.mu.Unlock()
	d, ok := s.proxies[name]
	if !ok {
		return fleet.Proxy{}, store.ErrNotFound
	}
	if !ifVersion.IsZero() && !d.proxy.UpdateTime.Equal(ifVersion) {
		return fleet.Proxy{}, store.ErrConflict
	}
	return s.put(name, edited(d.raw, e)).get(), nil
}

func edited(raw map[string]any, e store.Edit) map[string]any {
	out := maps.Clone(raw)
	if e.Labels != nil {
		labels := map[string]any{}
		for k, v := range e.Labels {
			labels[k] = v
		}
		out[store.FieldLabels] = labels
	}
	if e.Spec != nil {
		out[store.FieldSpec] = deepCopy(e.Spec)
	}
	if !e.DeleteTime.IsZero() {
		out[store.FieldDeleteTime] = e.DeleteTime
	}
	if !e.RotateTime.IsZero() {
		out[store.FieldRotateTime] = e.RotateTime
	}
	return out
}

// put stores what people wrote; the status stays as it is.
func (s *Store) put(name string, raw map[string]any) *document {
	at := s.commit()
	d := s.proxies[name]
	if d == nil {
		d = &document{}
		d.proxy.CreateTime = at
		s.proxies[name] = d
	}
	created := d.proxy.CreateTime
	d.raw = raw
	d.proxy = store.DecodeDocument(name, raw)
	d.proxy.CreateTime, d.proxy.UpdateTime = created, at
	return d
}

// PutRaw stores a document as somebody might edit it by hand: fields labels, spec and the like hold
// whatever they hold. The status stays, unless doc has one of its own: then it is lost, as one that
// does not decode is.
func (s *Store) PutRaw(name string, doc map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.put(name, deepCopy(doc).(map[string]any))
	if _, ok := doc[store.FieldStatus]; ok {
		d.status = fleet.Status{}
	}
}

// WipeStatus loses a status, as an operator might.
func (s *Store) WipeStatus(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.proxies[name]; ok {
		d.status = fleet.Status{}
		d.proxy.UpdateTime = s.commit()
	}
}

// Remove removes a document without asking the plane, as an operator might.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proxies, name)
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = deepCopy(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = deepCopy(x)
		}
		return out
	}
	return v
}
