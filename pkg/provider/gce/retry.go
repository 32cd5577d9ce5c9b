package gce

import (
	"net/http"
	"time"

	"github.com/googleapis/gax-go/v2"
)

// once keeps the library from trying a read again by itself: it would do so for ten minutes, and when
// to try again is for our callers to say.
func once() gax.CallOption {
	return gax.WithRetry(func() gax.Retryer { return nil })
}

// retried lets the library try a page again, twice, when the API is briefly not there. A listing has
// many pages and a run has one listing: to lose all of it to one 503 would cost the run.
func retried() gax.CallOption {
	return gax.WithRetry(func() gax.Retryer {
		return &fewTries{left: 2, Retryer: gax.OnHTTPCodes(
			gax.Backoff{Initial: 100 * time.Millisecond, Max: 2 * time.Second, Multiplier: 3},
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		)}
	})
}

// fewTries ends retrying after so many.
type fewTries struct {
	gax.Retryer
	left int
}

func (f *fewTries) Retry(err error) (time.Duration, bool) {
	if f.left == 0 {
		return 0, false
	}
	f.left--
	return f.Retryer.Retry(err)
}
