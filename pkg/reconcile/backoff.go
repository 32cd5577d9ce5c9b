package reconcile

import (
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// coolDown is for how long a zone without machines is left to others: stock comes back in minutes to
// hours, and each attempt that fails costs one.
const coolDown = 10 * time.Minute

// The classes of provider errors as statuses, summaries and metrics write them.
const (
	classNotFound  = "NotFound"
	classQuota     = "QuotaExceeded"
	classTransient = "Transient"
	classPermanent = "Permanent"
)

func className(err error) string {
	switch provider.ClassOf(err) {
	case provider.ErrNotFound:
		return classNotFound
	case provider.ErrQuotaExceeded:
		return classQuota
	case provider.ErrPermanent:
		return classPermanent
	}
	return classTransient
}

// backOff returns how long to wait after the attempts-th failure in a row of a class: 15 s doubling
// up to 5 min, give or take a quarter; for want of quota 1 min doubling up to 30 min, and up to a
// tenth more; never less than the cloud itself asked for. jitter is in [0,1).
func backOff(class string, attempts int32, jitter float64, atLeast time.Duration) time.Duration {
	base, limit, low, spread := 15*time.Second, 5*time.Minute, 0.75, 0.5
	if class == classQuota {
		base, limit, low, spread = time.Minute, 30*time.Minute, 1, 0.1
	}
	wait := limit
	if attempts < 16 { // beyond, the shift would overflow
		wait = min(limit, base<<max(0, attempts-1))
	}
	return max(atLeast, time.Duration(float64(wait)*(low+spread*jitter))).Truncate(time.Microsecond)
}

// details returns what the cloud itself said of err: its code, and how long it wants to be left
// alone.
func details(err error) (reason string, retryAfter time.Duration) {
	var e *provider.Error
	if errors.As(err, &e) {
		return e.Reason, e.RetryAfter
	}
	return "", 0
}
