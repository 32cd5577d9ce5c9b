package fleet

import "slices"

// Clone returns a copy that shares nothing that a writer of statuses changes.
func (s Status) Clone() Status {
	s.Accepted = clone(s.Accepted)
	s.Instance = clone(s.Instance)
	s.Next = clone(s.Next)
	s.Endpoint = clone(s.Endpoint)
	s.Drain = clone(s.Drain)
	s.Retry = clone(s.Retry)
	s.Events = slices.Clone(s.Events)
	s.Conditions = slices.Clone(s.Conditions)
	return s
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
