package lease

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Reason is why a call was refused; callers act on it.
type Reason string

// The reasons.
const (
	NoProxies        Reason = "NO_PROXIES"        // the fleet is empty
	FilterEmpty      Reason = "FILTER_EMPTY"      // no proxy matches labels, provider and region
	NoneHealthy      Reason = "NONE_HEALTHY"      // some match, none of them is Ready
	NoCapacity       Reason = "NO_CAPACITY"       // all slots of the Ready ones are taken
	Quarantined      Reason = "QUARANTINED"       // the Ready ones have been banned by the target lately
	Contention       Reason = "CONTENTION"        // there is room, but others were faster
	StoreUnavailable Reason = "STORE_UNAVAILABLE" // the store does not answer
	InvalidArgument  Reason = "INVALID_ARGUMENT"
	RequestIDReused  Reason = "REQUEST_ID_REUSED" // the same requestId with another request
	LeaseNotFound    Reason = "LEASE_NOT_FOUND"   // no lease has such an id
	LeaseExpired     Reason = "LEASE_EXPIRED"     // it has ended, or was given back
	LeaseRevoked     Reason = "LEASE_REVOKED"     // its proxy is gone
	ProxyNotFound    Reason = "PROXY_NOT_FOUND"
	NotFound         Reason = "NOT_FOUND" // no such path
	MethodNotAllowed Reason = "METHOD_NOT_ALLOWED"
	Unauthenticated  Reason = "UNAUTHENTICATED"
	PermissionDenied Reason = "PERMISSION_DENIED"
)

// meaning is how a reason is answered: HTTP status, canonical status (google.aip.dev/193), and after
// how long another try is worth it, 0 for never.
type meaning struct {
	code   int
	status string
	retry  time.Duration
}

// meanings is the one table from reasons to answers.
func meanings() map[Reason]meaning {
	return map[Reason]meaning{
		NoProxies:        {http.StatusServiceUnavailable, "UNAVAILABLE", 30 * time.Second},
		FilterEmpty:      {http.StatusServiceUnavailable, "UNAVAILABLE", 30 * time.Second},
		NoneHealthy:      {http.StatusServiceUnavailable, "UNAVAILABLE", 10 * time.Second},
		NoCapacity:       {http.StatusServiceUnavailable, "UNAVAILABLE", 2 * time.Second},
		Quarantined:      {http.StatusServiceUnavailable, "UNAVAILABLE", 60 * time.Second},
		Contention:       {http.StatusServiceUnavailable, "UNAVAILABLE", time.Second},
		StoreUnavailable: {http.StatusServiceUnavailable, "UNAVAILABLE", 2 * time.Second},
		InvalidArgument:  {http.StatusBadRequest, "INVALID_ARGUMENT", 0},
		RequestIDReused:  {http.StatusConflict, "ABORTED", 0},
		LeaseNotFound:    {http.StatusNotFound, "NOT_FOUND", 0},
		LeaseExpired:     {http.StatusGone, "FAILED_PRECONDITION", 0},
		LeaseRevoked:     {http.StatusGone, "FAILED_PRECONDITION", 0},
		ProxyNotFound:    {http.StatusNotFound, "NOT_FOUND", 0},
		NotFound:         {http.StatusNotFound, "NOT_FOUND", 0},
		MethodNotAllowed: {http.StatusMethodNotAllowed, "INVALID_ARGUMENT", 0},
		Unauthenticated:  {http.StatusUnauthorized, "UNAUTHENTICATED", 0},
		PermissionDenied: {http.StatusForbidden, "PERMISSION_DENIED", 0},
	}
}

// Error is a refusal.
type Error struct {
	Reason   Reason
	Message  string
	Field    string            // of the request, with InvalidArgument
	Metadata map[string]string // counts and the like
	Err      error             // cause, for the log
}

// Error says reason and message.
func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func refuse(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Message: fmt.Sprintf(format, args...)}
}

func invalid(field, format string, args ...any) *Error {
	return &Error{Reason: InvalidArgument, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// away is a store that does not answer. The cause is for the log only.
func away(err error) *Error {
	return &Error{Reason: StoreUnavailable, Message: "the store does not answer; try again", Err: err}
}

// asError returns err as one of ours; what is not is an outage of the store.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return away(err)
}
