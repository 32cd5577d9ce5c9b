package firestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// wire is the connection between a store and the emulator. It notes what goes over it, checks what
// holds for every call, and breaks on request.
type wire struct {
	t testing.TB

	mu      sync.Mutex
	calls   []string // names of methods
	queries []query
	held    func(method string)       // returns when the call may go on
	before  func(method string) error // an error comes instead of the call
	after   func(method string) error // an error comes instead of the reply
}

// emulator returns the address of the emulator. Without one the test is skipped, or fails where CI is.
func emulator(t testing.TB) string {
	t.Helper()
	host := os.Getenv("FIRESTORE_EMULATOR_HOST")
	if host == "" && os.Getenv("CI") == "true" {
		t.Fatal("FIRESTORE_EMULATOR_HOST must be set where CI is: run make test")
	}
	if host == "" {
		t.Skip("SKIPPED: no Firestore emulator; run make test, or set FIRESTORE_EMULATOR_HOST")
	}
	return host
}

// open connects to a project of the emulator that no other test uses.
func open(t testing.TB) (*firestore.Store, *wire) {
	t.Helper()
	w := &wire{t: t}
	conn, err := grpc.NewClient(emulator(t), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(w.unary), grpc.WithStreamInterceptor(w.stream))
	require.NoError(t, err)
	s, err := firestore.Open(t.Context(), fmt.Sprintf("test-%d", rand.Int64()), "(default)", option.WithGRPCConn(conn))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, w
}

// breaks sets what happens to calls from now on; nil functions let them pass.
func (w *wire) breaks(before, after func(method string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after = before, after
}

// hold sets what calls wait for; nil lets them pass.
func (w *wire) hold(held func(method string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = held
}

// took returns the names of the methods called since the last time.
func (w *wire) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// asked returns the queries made so far.
func (w *wire) asked() []query {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.queries)
}

// begin notes a call and returns the context for it, with the credentials of the emulator's owner.
func (w *wire) begin(ctx context.Context, method string) (context.Context, error) {
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) > 20*time.Second {
		w.t.Errorf("%s has no deadline, or a late one: %v", method, deadline)
	}
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held != nil {
		held(method)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, method)
	if w.before != nil {
		if err := w.before(method); err != nil {
			return ctx, err
		}
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner"), nil
}

func (w *wire) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	method = path.Base(method)
	ctx, err := w.begin(ctx, method)
	if err != nil {
		return err
	}
	err = invoke(ctx, "/google.firestore.v1.Firestore/"+method, req, reply, cc, opts...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.after != nil {
		err = w.after(method)
	}
	return err
}

func (w *wire) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, dial grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, err := w.begin(ctx, path.Base(method))
	if err != nil {
		return nil, err
	}
	s, err := dial(ctx, desc, cc, method, opts...)
	return stream{s, w}, err
}

// stream notes the queries that are sent.
type stream struct {
	grpc.ClientStream
	w *wire
}

func (s stream) SendMsg(m any) error {
	s.w.mu.Lock()
	switch m := m.(type) {
	case *firestorepb.RunQueryRequest:
		s.w.queries = append(s.w.queries, queryOf(m.GetStructuredQuery()))
	case *firestorepb.RunAggregationQueryRequest:
		s.w.queries = append(s.w.queries, queryOf(m.GetStructuredAggregationQuery().GetStructuredQuery()))
	}
	s.w.mu.Unlock()
	return s.ClientStream.SendMsg(m)
}
