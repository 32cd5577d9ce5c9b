package provider

import (
	"errors"
	"strings"
	"time"
)

// The classes of provider errors: what the control plane may conclude, not what the cloud said.
var (
	// ErrNotFound: the instance does not exist. Treated as gone.
	ErrNotFound = errors.New("not found")
	// ErrQuotaExceeded: the cloud has no room for it, by quota or by stock. Long back-off; for a
	// stock-out (see StockOutZone) another zone is tried.
	ErrQuotaExceeded = errors.New("quota exceeded")
	// ErrTransient: the same call may succeed later. Exponential back-off. The default class.
	ErrTransient = errors.New("transient")
	// ErrPermanent: the same call will never succeed. Not tried again until the spec changes.
	ErrPermanent = errors.New("permanent")
)

// ErrIncomplete marks a listing that did not see everything; see IncompleteError.
var ErrIncomplete = errors.New("incomplete view")

// ReasonNameConflict is the Reason of an ErrPermanent from Create whose name is taken by an instance
// that is not the requested one.
const ReasonNameConflict = "NameConflict"

// Error is a classified error of a provider. errors.Is finds its class and errors.As the cloud
// SDK's own error in the same value.
type Error struct {
	Class      error         // ErrNotFound, ErrQuotaExceeded, ErrTransient or ErrPermanent
	Op         string        // what was tried, such as "create"
	Name       string        // on what, usually an instance name
	Reason     string        // the cloud's own code, such as "QUOTA_EXCEEDED"; may be empty
	Zone       string        // zone that the error is about; may be empty
	StockOut   bool          // with ErrQuotaExceeded: Zone has no machines left at the moment
	RetryAfter time.Duration // least time to wait when the cloud said so, else 0
	Err        error         // the cloud's error; may be nil
}

// Error says operation, object, class and the cloud's reason and text, in this order.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(e.Op + " " + e.Name))
	if e.Zone != "" {
		b.WriteString(" in " + e.Zone)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.class().Error())
	if e.Reason != "" {
		b.WriteString(" (" + e.Reason + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the class and the cloud's error.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.class()}
	}
	return []error{e.class(), e.Err}
}

func (e *Error) class() error {
	if e.Class == nil {
		return ErrTransient
	}
	return e.Class
}

// ClassOf returns the class of err: that of the outermost Error in it, else the first class that
// errors.Is finds, else ErrTransient, since retrying is safer than giving up for good. It returns nil
// for nil.
func ClassOf(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e.class()
	}
	for _, class := range []error{ErrNotFound, ErrQuotaExceeded, ErrPermanent} {
		if errors.Is(err, class) {
			return class
		}
	}
	return ErrTransient
}

// StockOutZone returns the zone that has no machines left, if that is what err says.
func StockOutZone(err error) (zone string, ok bool) {
	var e *Error
	if errors.As(err, &e) && e.StockOut {
		return e.Zone, true
	}
	return "", false
}

// LaunchFailure returns why the instance that err calls absent never came up, when the provider
// knows: the Error inside an ErrNotFound. It returns nil otherwise.
func LaunchFailure(err error) *Error {
	var outer, inner *Error
	if errors.As(err, &outer) && outer.class() == ErrNotFound && errors.As(outer.Err, &inner) {
		return inner
	}
	return nil
}

// IncompleteError says which parts of a cloud a listing could not see. It is ErrIncomplete and
// ErrTransient.
type IncompleteError struct {
	Unreachable []string // zones or scopes that did not answer; may be empty where the cloud did not say
	Err         error    // may be nil
}

// Error names the unreachable parts.
func (e *IncompleteError) Error() string {
	s := ErrIncomplete.Error()
	if len(e.Unreachable) > 0 {
		s += ": no answer from " + strings.Join(e.Unreachable, ", ")
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the classes and the cause.
func (e *IncompleteError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrIncomplete, ErrTransient}
	}
	return []error{ErrIncomplete, ErrTransient, e.Err}
}
