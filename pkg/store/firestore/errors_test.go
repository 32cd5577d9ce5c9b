package firestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// calls are one of each kind that reads and of each kind that writes.
func calls(s *firestore.Store) map[string]func(ctx context.Context) error {
	p := fleet.Proxy{Name: "a", UpdateTime: start}
	return map[string]func(ctx context.Context) error{
		"GetProxy":    func(ctx context.Context) error { _, err := s.GetProxy(ctx, "a"); return err },
		"ListProxies": func(ctx context.Context) error { _, err := s.ListProxies(ctx); return err },
		"WriteStatus": func(ctx context.Context) error { _, err := s.WriteStatus(ctx, p, store.AllFields); return err },
		"RemoveProxy": func(ctx context.Context) error { return s.RemoveProxy(ctx, p) },
		"CreateProxy": func(ctx context.Context) error { _, err := s.CreateProxy(ctx, "a", store.Edit{}); return err },
		"EditProxy": func(ctx context.Context) error {
			_, err := s.EditProxy(ctx, "a", store.Edit{Spec: external()}, start)
			return err
		},
		"CreateSlot":   func(ctx context.Context) error { _, err := s.CreateSlot(ctx, leased(0, "l"), asked("k")); return err },
		"DeleteSlot":   func(ctx context.Context) error { return s.DeleteSlot(ctx, store.Slot{Proxy: "a", Version: start}) },
		"GetSlot":      func(ctx context.Context) error { _, err := s.GetSlot(ctx, "a", 0); return err },
		"ExpiredSlots": func(ctx context.Context) error { _, err := s.ExpiredSlots(ctx, start, 10); return err },
		"CountSlots":   func(ctx context.Context) error { _, err := s.CountSlots(ctx, start); return err },
		"GetRequest":   func(ctx context.Context) error { _, err := s.GetRequest(ctx, "k"); return err },
		"RecordBan": func(ctx context.Context) error {
			_, err := s.RecordBan(ctx, "a", "t", "l", start, time.Hour)
			return err
		},
		"ReadCatalog": func(ctx context.Context) error { _, err := s.ReadCatalog(ctx); return err },
		"WriteShard": func(ctx context.Context) error {
			_, err := s.WriteShard(ctx, store.Shard{Version: start}, shard(), nil)
			return err
		},
		"SetVerdict": func(ctx context.Context) error { return s.SetVerdict(ctx, 0, "a", fleet.Verdict{}) },
		"LockRun":    func(ctx context.Context) error { _, err := s.LockRun(ctx, "me", start, time.Hour); return err },
		"UnlockRun":  func(ctx context.Context) error { return s.UnlockRun(ctx, store.Run{Fence: 1, Version: start}) },
		"GetRun":     func(ctx context.Context) error { _, err := s.GetRun(ctx); return err },
	}
}

func shard() map[string]fleet.Entry { return map[string]fleet.Entry{"a": {Host: "h"}} }

func TestAnOutageIsNeverTakenForAnAnswer(t *testing.T) {
	t.Parallel()
	emulator(t)
	for _, row := range []struct {
		name string
		code codes.Code
		text string
	}{
		{"the database does not exist", codes.NotFound, "The database (default) does not exist for project p"},
		{"nothing is allowed", codes.PermissionDenied, "Missing or insufficient permissions."},
		{"nobody is known", codes.Unauthenticated, "invalid credentials"},
		{"others hold locks", codes.Aborted, "Transaction lock timeout."},
		{"the request is wrong", codes.InvalidArgument, "maximum entity size is 1048572 bytes"},
		{"the server is at a loss", codes.Unknown, "?"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, w := open(t)
			w.breaks(func(string) error { return status.Error(row.code, row.text) }, nil)
			for name, call := range calls(s) {
				err := call(t.Context())
				require.ErrorContains(t, err, row.text, name)
				isNoAnswer(t, err, name)
			}
		})
	}
}

func isNoAnswer(t *testing.T, err error, name string) {
	t.Helper()
	for _, answer := range []error{store.ErrNotFound, store.ErrExists, store.ErrConflict, store.ErrLocked} {
		assert.NotErrorIs(t, err, answer, name)
	}
}

func TestAMissingIndexIsNoConflict(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	w.breaks(func(string) error {
		return status.Error(codes.FailedPrecondition, "The query requires an index. You can create it here: https://console")
	}, nil)
	_, err := s.CountSlots(t.Context(), start)
	require.ErrorContains(t, err, "requires an index")
	isNoAnswer(t, err, "CountSlots")
	_, err = s.ExpiredSlots(t.Context(), start, 1)
	require.ErrorContains(t, err, "requires an index")
	isNoAnswer(t, err, "ExpiredSlots")
}

func TestWhatRefusesACommitIsToldWithItsReason(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	w.breaks(func(method string) error {
		if method == commit {
			return status.Error(codes.FailedPrecondition, "the stored version (1) does not match the required base version (2)")
		}
		return nil
	}, nil)
	err := s.DeleteSlot(t.Context(), leased(0, "l"))
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "delete slot a.0: changed meanwhile: the stored version (1)")
}

// TestAnOutageEndsWithTheCallersTime: the client tries again for as long as the context lasts.
func TestAnOutageEndsWithTheCallersTime(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	w.breaks(func(string) error { return status.Error(codes.Unavailable, "no route to host") }, nil)
	for name, call := range calls(s) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		begin := time.Now()
		err := call(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		isNoAnswer(t, err, name)
		assert.Less(t, time.Since(begin), 5*time.Second, name)
	}
}

func TestAnAnswerThatComesTooLateIsNoAnswer(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	_, err := s.CreateSlot(t.Context(), leased(0, "l"), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w.breaks(func(string) error { cancel(); return status.Error(codes.AlreadyExists, "it exists") }, nil)
	_, err = s.CreateSlot(ctx, leased(0, "m"), nil)
	require.ErrorIs(t, err, context.Canceled)
	isNoAnswer(t, err, "CreateSlot")
	assert.ErrorContains(t, err, "it exists", "and yet it is told")
}

func TestADatabaseThatIsNoneIsToldWhenOpened(t *testing.T) {
	t.Parallel()
	emulator(t)
	_, err := firestore.Open(t.Context(), "p", "")
	require.ErrorContains(t, err, "open Firestore database")
}
