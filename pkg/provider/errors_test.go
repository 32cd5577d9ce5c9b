package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sdkError stands for the error type of a cloud's client library.
type sdkError struct{ code int }

func (e *sdkError) Error() string { return fmt.Sprintf("code %d", e.code) }

func TestClassAndCloudErrorAreInOneValue(t *testing.T) {
	t.Parallel()
	for _, class := range []error{ErrNotFound, ErrQuotaExceeded, ErrTransient, ErrPermanent} {
		err := fmt.Errorf("reconcile: %w", &Error{Class: class, Op: "create", Err: &sdkError{code: 7}})
		require.ErrorIs(t, err, class)
		var sdk *sdkError
		require.ErrorAs(t, err, &sdk)
		assert.Equal(t, 7, sdk.code)
		for _, other := range []error{ErrNotFound, ErrQuotaExceeded, ErrTransient, ErrPermanent} {
			assert.Equal(t, other == class, errors.Is(err, other))
		}
	}
	require.ErrorIs(t, &Error{Class: ErrNotFound}, ErrNotFound, "without an error of the cloud, too")
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		promise string
		err     error
		want    error
	}{
		{"no error has no class", nil, nil},
		{"unknown is transient", errors.New("who knows"), ErrTransient},
		{"no class is transient", &Error{Op: "get"}, ErrTransient},
		{"a bare class counts", fmt.Errorf("x: %w", ErrPermanent), ErrPermanent},
		{"not found", ErrNotFound, ErrNotFound},
		{"quota", ErrQuotaExceeded, ErrQuotaExceeded},
		{"the outermost counts", &Error{Class: ErrNotFound, Err: &Error{Class: ErrQuotaExceeded}}, ErrNotFound},
		{"an incomplete view is transient", &IncompleteError{}, ErrTransient},
		{"an ended context is transient", context.Canceled, ErrTransient},
	} {
		assert.Equal(t, row.want, ClassOf(row.err), row.promise)
	}
}

func TestErrorSaysOperationObjectClassAndReason(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err  *Error
		want string
	}{
		{&Error{}, "transient"},
		{&Error{Op: "list"}, "list: transient"},
		{&Error{Class: ErrNotFound, Op: "get", Name: "proxy-a"}, "get proxy-a: not found"},
		{&Error{Class: ErrQuotaExceeded, Op: "create", Name: "proxy-a", Zone: "us-east1-b", Reason: "QUOTA_EXCEEDED", StockOut: true, RetryAfter: time.Minute, Err: &sdkError{7}},
			"create proxy-a in us-east1-b: quota exceeded (QUOTA_EXCEEDED): code 7"},
	} {
		assert.EqualError(t, row.err, row.want)
	}
}

func TestStockOutNamesItsZone(t *testing.T) {
	t.Parallel()
	zone, ok := StockOutZone(fmt.Errorf("create: %w", &Error{Class: ErrQuotaExceeded, Zone: "us-east1-b", StockOut: true}))
	assert.True(t, ok)
	assert.Equal(t, "us-east1-b", zone)
	_, ok = StockOutZone(&Error{Class: ErrQuotaExceeded, Zone: "us-east1-b"})
	assert.False(t, ok, "quota is no stock-out")
	_, ok = StockOutZone(ErrQuotaExceeded)
	assert.False(t, ok)
}

func TestLaunchFailureIsFoundInsideNotFound(t *testing.T) {
	t.Parallel()
	cause := &Error{Class: ErrQuotaExceeded, Reason: "QUOTA_EXCEEDED"}
	assert.Same(t, cause, LaunchFailure(fmt.Errorf("x: %w", &Error{Class: ErrNotFound, Err: cause})))
	for _, err := range []error{nil, ErrNotFound, &Error{Class: ErrNotFound}, &Error{Class: ErrNotFound, Err: &sdkError{404}}, &Error{Class: ErrTransient, Err: cause}} {
		assert.Nil(t, LaunchFailure(err))
	}
}

func TestIncompleteViewNamesWhatWasSilent(t *testing.T) {
	t.Parallel()
	err := error(&IncompleteError{Unreachable: []string{"us-east1-b", "us-east1-c"}, Err: &sdkError{503}})
	require.ErrorIs(t, err, ErrIncomplete)
	require.ErrorIs(t, err, ErrTransient)
	var sdk *sdkError
	require.ErrorAs(t, err, &sdk)
	require.EqualError(t, err, "incomplete view: no answer from us-east1-b, us-east1-c: code 503")
	require.EqualError(t, &IncompleteError{}, "incomplete view")
	require.ErrorIs(t, &IncompleteError{}, ErrIncomplete)
}

func TestRefsNameTheirInstance(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Ref{Name: "a", Zone: "b"}, CreateRequest{Name: "a", Zone: "b", Region: "c"}.Ref())
	assert.Equal(t, Ref{Name: "a", Zone: "b", Operation: "o"}, Instance{Name: "a", Zone: "b", Operation: "o", UID: "u"}.Ref())
}
