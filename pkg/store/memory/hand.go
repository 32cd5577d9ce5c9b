package memory

import (
	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// PutRaw stores a document as somebody might edit it by hand: labels, spec and all else that people
// write are what doc holds, however nonsensical. The status stays, unless doc has one of its own:
// then it is lost, as one that does not decode is.
func (s *Store) PutRaw(name string, doc map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := natural(doc).(map[string]any)
	_, lost := raw[store.FieldStatus]
	delete(raw, store.FieldStatus)
	d := s.put(name, raw)
	if lost {
		s.wipe(d)
	}
}

// WipeStatus loses a status, as an operator might.
func (s *Store) WipeStatus(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.proxies[name]; ok {
		s.wipe(d)
	}
}

func (s *Store) wipe(d *document) {
	d.status = fleet.Status{}
	d.proxy.UpdateTime = s.commit()
}

// Remove removes a document without asking the plane, as an operator might.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proxies, name)
}
