package firestore

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"crawl.example.com/proxyfleet/pkg/store"
)

// classOf is the one table from Firestore's errors to ours, nil for what is an outage. It holds for
// commits only: the same codes of a query speak of a missing index or database. NotFound is not in
// it, as it may speak of the database: whether a document is absent is read from the document.
func classOf(code codes.Code) error {
	switch code {
	case codes.AlreadyExists:
		return store.ErrExists // a precondition exists=false
	case codes.FailedPrecondition:
		return store.ErrConflict // a precondition on the update time, also when the document is absent
	}
	return nil
}

// refused says why a commit failed.
func refused(ctx context.Context, op, what string, err error) error {
	if err == nil {
		return nil
	}
	class := classOf(status.Code(err))
	if class == nil || ctx.Err() != nil {
		return outage(ctx, op, what, err)
	}
	return fmt.Errorf("%s %s: %w: %s", op, what, class, status.Convert(err).Message())
}

// outage says what failed when nothing may be concluded from it. When the context has ended, its
// error is in the chain: the client reports that in several ways, some without it.
func outage(ctx context.Context, op, what string, err error) error {
	if end := ctx.Err(); end != nil && !errors.Is(err, end) {
		return fmt.Errorf("%s %s: %w: %w", op, what, end, err)
	}
	return fmt.Errorf("%s %s: %w", op, what, err)
}
