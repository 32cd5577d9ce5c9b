package lease

import (
	"context"
	"slices"
	"strconv"
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
	one := r
	one.payload = hash(r.payloadHash(), strconv.Itoa(count))
	one.Exclude = slices.Clone(r.Exclude)
	for distinct := true; len(b.Leases) < count; {
		if r.RequestID != "" {
			one.RequestID = hash(r.RequestID, strconv.Itoa(len(b.Leases)))
		}
		l, err := s.Acquire(ctx, one)
		switch {
		case err == nil:
			b.Leases = append(b.Leases, l)
			one.Wait = 0
			if distinct {
				one.Exclude = append(one.Exclude, l.Proxy.Name)
			}
		case len(b.Leases) == 0:
			return b, err
		case distinct && none(err):
			// Every proxy has given one: now a second one from each will do.
			distinct, one.Exclude = false, slices.Clone(r.Exclude)
		default:
			b.Missing, b.Reason = count-len(b.Leases), asError(err).Reason
			return b, nil
		}
	}
	return b, nil
}

// none reports whether an error says that none is to be had with the request as it was.
func none(err error) bool {
	switch asError(err).Reason {
	case NoCapacity, Contention, NoneHealthy, Quarantined, FilterEmpty:
		return true
	}
	return false
}
