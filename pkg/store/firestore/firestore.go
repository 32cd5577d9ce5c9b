// Package firestore is the store on Firestore, or on its emulator where FIRESTORE_EMULATOR_HOST is set.
package firestore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"

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

// Store implements store.Store. Each write is atomic and conditional where the contract says so; there
// are no transactions that hold locks while something else is waited for.
type Store struct {
	client *firestore.Client
	writes *writes // of slots
}

var _ store.Store = (*Store)(nil)

// Open connects to a database of a project; "(default)" is the one without a name. It does not ask
// whether the database exists: the first call will tell.
func Open(ctx context.Context, projectID, database string, opts ...option.ClientOption) (*Store, error) {
	client, err := firestore.NewClientWithDatabase(ctx, projectID, database, opts...)
	if err != nil {
		return nil, fmt.Errorf("open Firestore database %s of project %s: %w", database, projectID, err)
	}
	return &Store{client: client, writes: &writes{client: client}}, nil
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

// get reads one document, or returns ErrNotFound.
func get(ctx context.Context, op string, ref *firestore.DocumentRef) (*firestore.DocumentSnapshot, error) {
	if !possible(ref) {
		return nil, fmt.Errorf("%s: %w: no document has such an id", op, store.ErrNotFound)
	}
	d, err := ref.Get(ctx)
	switch {
	case err == nil:
		return d, nil
	case d != nil && !d.Exists():
		// The snapshot says that the document is absent. The code says NotFound of a database, too.
		return nil, fmt.Errorf("%s %s: %w", op, ref.ID, store.ErrNotFound)
	}
	return nil, outage(ctx, op, ref.ID, err)
}

// possible reports whether there can be such a document: Firestore knows no empty id, and takes a slash
// for the path to another collection.
func possible(ref *firestore.DocumentRef) bool {
	return ref != nil && ref.ID != "" && !strings.Contains(ref.ID, "/")
}

// ifVersion makes a write conditional. The zero version is that of no document; Firestore takes only
// times past 1970.
func ifVersion(t time.Time) firestore.Precondition {
	if t.IsZero() {
		t = time.UnixMicro(1)
	}
	return firestore.LastUpdateTime(t)
}

// micros is the form in which Firestore keeps times.
func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
