package memory

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// document is one stored Proxy.
type document struct {
	raw    map[string]any // what people wrote
	proxy  fleet.Proxy    // decoded from raw; without its status
	status fleet.Status   // in the normal form
}

// get returns a copy that its caller may change.
func (d *document) get() fleet.Proxy {
	p := d.proxy
	p.Labels = maps.Clone(p.Labels)
	p.Spec = cloneSpec(p.Spec)
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
	for _, name := range slices.Sorted(maps.Keys(s.proxies)) {
		out = append(out, s.proxies[name].get())
	}
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
	if !ok {
		return p, store.ErrConflict
	}
	same := store.HasStatus(d.status, p.Status, fields)
	if !d.proxy.UpdateTime.Equal(p.UpdateTime) {
		if same {
			return d.get(), nil
		}
		return p, store.ErrConflict
	}
	if !same {
		d.status = store.NormalStatus(store.MergeStatus(d.status, p.Status, fields))
		d.proxy.UpdateTime = s.commit()
	}
	p.UpdateTime = d.proxy.UpdateTime
	return p, nil
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
	return s.put(name, edited(nil, e)).get(), nil
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
	out := map[string]any{}
	maps.Copy(out, raw)
	if e.Labels != nil {
		out[store.FieldLabels] = natural(e.Labels)
	}
	if e.Spec != nil {
		out[store.FieldSpec] = natural(e.Spec)
	}
	if !e.DeleteTime.IsZero() {
		out[store.FieldDeleteTime] = natural(e.DeleteTime)
	}
	if !e.RotateTime.IsZero() {
		out[store.FieldRotateTime] = natural(e.RotateTime)
	}
	return out
}

// put stores what people wrote, raw; the status stays as it is.
func (s *Store) put(name string, raw map[string]any) *document {
	d := s.proxies[name]
	if d != nil && reflect.DeepEqual(d.raw, raw) {
		return d // what changes nothing keeps the version
	}
	at := s.commit()
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
