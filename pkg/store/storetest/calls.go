package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// calls makes one call of each method of a store, by name.
func calls(s store.Store) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"ListProxies": func(ctx context.Context) error { _, err := s.ListProxies(ctx); return err },
		"GetProxy":    func(ctx context.Context) error { _, err := s.GetProxy(ctx, "a"); return err },
		"WriteStatus": func(ctx context.Context) error {
			_, err := s.WriteStatus(ctx, stored("a"), store.AllFields)
			return err
		},
		"RemoveProxy": func(ctx context.Context) error { return s.RemoveProxy(ctx, stored("a")) },
		"CreateProxy": func(ctx context.Context) error { _, err := s.CreateProxy(ctx, "a", store.Edit{}); return err },
		"EditProxy":   func(ctx context.Context) error { _, err := s.EditProxy(ctx, "a", edit(), time.Time{}); return err },
		"CreateSlot": func(ctx context.Context) error {
			_, err := s.CreateSlot(ctx, slot("a", 0, "l"), request("l"))
			return err
		},
		"ReplaceSlot":  func(ctx context.Context) error { _, err := s.ReplaceSlot(ctx, slot("a", 0, "l"), nil); return err },
		"DeleteSlot":   func(ctx context.Context) error { return s.DeleteSlot(ctx, slot("a", 0, "l")) },
		"GetSlot":      func(ctx context.Context) error { _, err := s.GetSlot(ctx, "a", 0); return err },
		"SlotsFrom":    func(ctx context.Context) error { _, err := s.SlotsFrom(ctx, "a", "b", 1); return err },
		"ProxySlots":   func(ctx context.Context) error { _, err := s.ProxySlots(ctx, "a"); return err },
		"CountSlots":   func(ctx context.Context) error { _, err := s.CountSlots(ctx, at(0)); return err },
		"ExpiredSlots": func(ctx context.Context) error { _, err := s.ExpiredSlots(ctx, at(0), 1); return err },
		"GetRequest":   func(ctx context.Context) error { _, err := s.GetRequest(ctx, "key"); return err },
		"RecordBan": func(ctx context.Context) error {
			_, err := s.RecordBan(ctx, "a", "t", "l", at(0), time.Hour)
			return err
		},
		"ReadCatalog": func(ctx context.Context) error { _, err := s.ReadCatalog(ctx); return err },
		"WriteShard": func(ctx context.Context) error {
			_, err := s.WriteShard(ctx, store.Shard{}, shardOf("a"), nil)
			return err
		},
		"SetVerdict":    func(ctx context.Context) error { return s.SetVerdict(ctx, 0, "a", fleet.Verdict{}) },
		"SetQuarantine": func(ctx context.Context) error { return s.SetQuarantine(ctx, 0, "a", "t", at(0)) },
		"LockRun":       func(ctx context.Context) error { _, err := s.LockRun(ctx, "h", at(0), time.Minute); return err },
		"UnlockRun":     func(ctx context.Context) error { return s.UnlockRun(ctx, store.Run{Fence: 1, Version: at(0)}) },
		"GetRun":        func(ctx context.Context) error { _, err := s.GetRun(ctx); return err },
	}
}

func stored(name string) fleet.Proxy { return fleet.Proxy{Name: name, UpdateTime: at(0)} }

func edit() store.Edit { return store.Edit{Spec: external(nil)} }

func shardOf(name string) map[string]fleet.Entry { return map[string]fleet.Entry{name: {Host: "h"}} }

func callCases() []testCase {
	return []testCase{
		{"a call whose context has ended has no effect and returns its error", endedCallsDoNothing},
		{"a call whose time is over returns that", overdueCallsSaySo},
	}
}

func endedCallsDoNothing(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(h.Store) {
		require.ErrorIs(t, call(ctx), context.Canceled, name)
	}
	list, err := h.Store.ListProxies(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	slots, err := h.Store.SlotsFrom(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Empty(t, slots)
	shards, err := h.Store.ReadCatalog(t.Context())
	require.NoError(t, err)
	require.Empty(t, shards)
	run, err := h.Store.GetRun(t.Context())
	require.NoError(t, err)
	require.Zero(t, run)
}

func overdueCallsSaySo(t *testing.T, h Harness) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, call := range calls(h.Store) {
		require.ErrorIs(t, call(ctx), context.DeadlineExceeded, name)
	}
}
