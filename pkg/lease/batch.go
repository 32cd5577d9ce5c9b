package lease

import (
	"context"
	"slices"
)

// MaxBatch is how many leases one call may ask for.
const MaxBatch = 50

// Batch is what a batch call grants: as many leases as there were.
type Batch struct {
	Leases  []Lease `json:"leases"`
	Missing int     `json:"missing"`
	Reason  Reason  `json:"reason,omitempty"` // why some are missing
}

// AcquireBatch grants up to count leases, on distinct proxies first. Each has a request id of its own
// when r has one, so that a repeated call finds all of them. It waits for the first one only.
func (s *Service) AcquireBatch(ctx context.Context, r Request, count int) (Batch, error) {
	b := Batch{Leases: []Lease{}}
	distinct := true
	exclude := slices.Clone(r.Exclude)
	for i := 0; i < count; {
		one := r
		if r.RequestID != "" {
			one.RequestID = hash(r.RequestID, string(rune('a'+i)))
		}
		one.Filter.Exclude = exclude
		if i > 0 {
			one.Wait = 0
		}
		l, err := s.Acquire(ctx, one)
		switch {
		case err == nil:
			b.Leases = append(b.Leases, l)
			if distinct {
				exclude = append(exclude, l.Proxy.Name)
			}
			i++
		case distinct && len(exclude) > len(r.Exclude) && worthWaiting(err):
			// Every proxy has given one: now a second one from each will do.
			distinct, exclude = false, slices.Clone(r.Exclude)
		case len(b.Leases) == 0 && !distinct || len(b.Leases) == 0:
			return b, err
		default:
			b.Missing, b.Reason = count-len(b.Leases), asError(err).Reason
			return b, nil
		}
	}
	return b, nil
}
