package gce

import (
	"context"
	"net/http"
	"time"
)

// Fault is something that goes wrong with requests to come. Several of its effects can be combined.
type Fault struct {
	Method Method // which calls it meets; empty for all
	Zone   string // of these, those to this zone; empty for all
	Name   string // of these, those for this instance or operation; empty for all
	Times  int    // how many calls it meets; 0 means all

	Delay       time.Duration   // the answer comes this much later
	Until       <-chan struct{} // the answer comes when this is closed, unless it is nil
	Status      int             // it is this error, with Reason, Message and RetryAfter
	Reason      string
	Message     string
	RetryAfter  time.Duration
	DropRequest bool // nothing happens and the connection ends
	LoseAnswer  bool // the request takes effect and the connection ends

	// Operation makes an accepted insert fail later, with this code; for Insert only. The instance is
	// never seen.
	Operation *OperationError
}

// OperationError is how an accepted operation fails.
type OperationError struct {
	Code    string        // such as ZONE_RESOURCE_POOL_EXHAUSTED
	Message string        // default: the API's own for the codes that the server knows
	Status  int           // httpErrorStatusCode; default: that of the code, else none
	After   time.Duration // when it fails; default Options.Provision
}

func (f *Fault) meets(c Call) bool {
	return (f.Method == "" || f.Method == c.Method) && (f.Zone == "" || f.Zone == c.Zone) &&
		(f.Name == "" || f.Name == c.Name) && f.Operation == nil
}

// wait holds an answer back; it reports whether anybody still waits for it.
func (f *Fault) wait(ctx context.Context) bool {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return false
		}
	}
	if f.Until == nil {
		return true
	}
	select {
	case <-f.Until:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *Fault) message() string {
	if f.Message != "" {
		return f.Message
	}
	return http.StatusText(f.Status)
}

// Inject makes a fault happen. Faults are tried in the order of their injection.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Heal takes back all faults that are left, and makes all zones answer.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	clear(s.unreachable)
}

// SetUnreachable makes a zone silent, or answer again: zonal calls to it get 503, and lists say that it
// is unreachable and leave out its instances.
func (s *Server) SetUnreachable(zone string, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreachable[zone] = silent
}

// takeOperationFault returns how the insert of k will fail, or nil.
func (s *Server) takeOperationFault(k key) *OperationError {
	for i, f := range s.faults {
		if f.Operation == nil || f.Zone != "" && f.Zone != k.zone || f.Name != "" && f.Name != k.name {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		}
		return f.Operation
	}
	return nil
}
