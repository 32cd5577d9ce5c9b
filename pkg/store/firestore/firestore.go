// Package firestore is the store on Firestore, or on its emulator where FIRESTORE_EMULATOR_HOST is set.
package firestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"crawl.example.com/proxyfleet/pkg/store"
)

// The collections.
const (
	colProxies  = "proxies"
	colSlots    = "slots"
	colRequests = "requests"
	colBans     = "bans"
	colCatalog  = "catalog"
	colRuns     = "runs"
)

// Store implements store.Store. Each write is one atomic commit, conditional where the contract says
// so; there are no transactions that hold locks while something else is waited for.
type Store struct {
	client *firestore.Client
}

var _ store.Store = (*Store)(nil)

// Open connects to a database of a project; "(default)" is the one without a name. It does not ask
// whether the database exists: the first call will tell.
func Open(ctx context.Context, projectID, database string, opts ...option.ClientOption) (*Store, error) {
	client, err := firestore.NewClientWithDatabase(ctx, projectID, database, opts...)
	if err != nil {
		return nil, fmt.Errorf("open Firestore database %s of project %s: %w", database, projectID, err)
	}
	return &Store{client: client}, nil
}

// Close ends the connection.
func (s *Store) Close() error { return s.client.Close() }

// callTimeout bounds calls whose caller set no deadline: the client has none of its own for reads.
const callTimeout = 20 * time.Second

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callTimeout)
}

// failure is the one table from Firestore's errors to ours. What is not in it is an outage.
func failure(ctx context.Context, op, what string, err error) error {
	if err == nil {
		return nil
	}
	// The client reports an ended context in several ways, some without it in the chain.
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	var class error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case status.Code(err) == codes.NotFound:
		class = store.ErrNotFound
	case status.Code(err) == codes.AlreadyExists:
		class = store.ErrExists
	case status.Code(err) == codes.FailedPrecondition:
		class = store.ErrConflict
	}
	if class != nil {
		return fmt.Errorf("%s %s: %w", op, what, class)
	}
	return fmt.Errorf("%s %s: %w", op, what, err)
}

// micros is the form in which Firestore keeps times.
func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
