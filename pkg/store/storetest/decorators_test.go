package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
	"crawl.example.com/proxyfleet/pkg/store/storetest"
)

func TestADecoratedStoreIsStillAStore(t *testing.T) {
	t.Parallel()
	for name, decorate := range map[string]func(store.Store) store.Store{
		"Around":   func(s store.Store) store.Store { return storetest.Around(s, nil, nil) },
		"Counting": func(s store.Store) store.Store { return storetest.Counting(s) },
		"Faulty":   func(s store.Store) store.Store { return storetest.NewFaulty(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(*testing.T) storetest.Harness {
				s := memory.New(time.Now)
				return storetest.Harness{Store: decorate(s), PutRaw: s.PutRaw}
			})
		})
	}
}

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func take(ctx context.Context, s store.Store, proxy string) (store.Slot, error) {
	return s.CreateSlot(ctx, store.Slot{Proxy: proxy, LeaseID: proxy, ExpireTime: start}, nil)
}

func TestTheFirstWriteOfEveryDocumentIsLostOneWayOrTheOther(t *testing.T) {
	t.Parallel()
	applied := func(seed uint64) (out string) {
		inner := memory.New(time.Now)
		s := storetest.LoseFirstWrites(inner, seed)
		for n := range 40 {
			name := fmt.Sprint("p", n)
			_, err := take(t.Context(), s, name)
			require.ErrorIs(t, err, storetest.ErrLost)
			require.NotErrorIs(t, err, store.ErrExists)
			_, err = take(t.Context(), s, name)
			if errors.Is(err, store.ErrExists) {
				out += "1"
			} else {
				require.NoError(t, err, "the second write is like any other")
				out += "0"
			}
		}
		return out
	}
	first := applied(1)
	assert.Contains(t, first, "1")
	assert.Contains(t, first, "0")
	assert.Equal(t, first, applied(1), "a seed means the same again")
	assert.NotEqual(t, first, applied(2))
}

func TestReadsAreNeverLostAndEveryKindOfDocumentIs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := storetest.LoseFirstWrites(memory.New(time.Now), 7)
	_, err := s.GetProxy(ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.ReadCatalog(ctx)
	require.NoError(t, err)
	_, err = s.GetRun(ctx)
	require.NoError(t, err)
	for name, write := range map[string]func() error{
		"proxies": func() error { _, err := s.CreateProxy(ctx, "a", store.Edit{}); return err },
		"slots":   func() error { _, err := take(ctx, s, "a"); return err },
		"catalog": func() error {
			_, err := s.WriteShard(ctx, store.Shard{}, map[string]fleet.Entry{}, nil)
			return err
		},
		"runs": func() error { _, err := s.LockRun(ctx, "me", start, time.Minute); return err },
		"bans": func() error { _, err := s.RecordBan(ctx, "a", "t", "l", start, time.Minute); return err },
	} {
		require.ErrorIs(t, write(), storetest.ErrLost, name)
		require.NotErrorIs(t, write(), storetest.ErrLost, name)
	}
}

func TestDocumentsAreCountedAsTheyAreBilled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := storetest.Counting(memory.New(time.Now))
	check := func(name string, reads, writes int, call func() error) {
		t.Helper()
		s.Reset()
		require.NoError(t, call(), name)
		assert.Equal(t, reads, s.Reads(), name)
		assert.Equal(t, writes, s.Writes(), name)
		assert.Equal(t, 1, s.Calls(), name)
	}
	var p fleet.Proxy
	var slot store.Slot
	check("a list of nothing", 1, 0, func() error { _, err := s.ListProxies(ctx); return err })
	check("a new document", 1, 1, func() (err error) { p, err = s.CreateProxy(ctx, "a", store.Edit{}); return err })
	check("another", 1, 1, func() error { _, err := s.CreateProxy(ctx, "b", store.Edit{}); return err })
	check("a list of two", 2, 0, func() error { _, err := s.ListProxies(ctx); return err })
	check("a status", 0, 1, func() error { p.Status.UID = "u"; _, err := s.WriteStatus(ctx, p, store.AllFields); return err })
	check("a slot with a request", 0, 2, func() (err error) {
		slot, err = s.CreateSlot(ctx, store.Slot{Proxy: "a", ExpireTime: start}, &store.Request{Key: "k"})
		return err
	})
	check("a count", 1, 0, func() error { _, err := s.CountSlots(ctx, start); return err })
	check("an empty window", 1, 0, func() error { _, err := s.SlotsFrom(ctx, "b", "", 5); return err })
	check("a release", 0, 1, func() error { return s.DeleteSlot(ctx, slot) })
	check("the lock", 1, 1, func() error { _, err := s.LockRun(ctx, "me", start, time.Minute); return err })

	s.Reset()
	_, err := s.LockRun(ctx, "you", start, time.Minute)
	require.ErrorIs(t, err, store.ErrLocked)
	assert.Zero(t, s.Writes("runs"), "a lock that is held is not written")
	_, err = s.WriteStatus(ctx, fleet.Proxy{Name: "a"}, store.AllFields)
	require.ErrorIs(t, err, store.ErrConflict)
	assert.Equal(t, 1, s.Reads("proxies"), "a conflict is looked at")
	assert.Equal(t, 1, s.Calls("WriteStatus"))
	assert.Equal(t, 2, s.Calls("WriteStatus", "LockRun"))
}

func TestAFaultyStoreFailsAsOftenAsItIsTold(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	broken := errors.New("broken")
	s := storetest.NewFaulty(memory.New(time.Now))
	s.Refuse("CreateSlot", 2, broken)
	for range 2 {
		_, err := take(ctx, s, "a")
		require.ErrorIs(t, err, broken)
	}
	_, err := s.GetSlot(ctx, "a", 0)
	require.ErrorIs(t, err, store.ErrNotFound, "without effect")
	s.Lose("*", 1)
	_, err = take(ctx, s, "a")
	require.ErrorIs(t, err, storetest.ErrLost)
	_, err = s.GetSlot(ctx, "a", 0)
	require.NoError(t, err, "with effect")
	s.Lose("CreateSlot", 1)
	_, err = take(ctx, s, "a")
	require.ErrorIs(t, err, store.ErrExists, "only a success is lost")
	s.Refuse("*", -1, broken)
	for range 5 {
		_, err = s.GetRun(ctx)
		require.ErrorIs(t, err, broken)
	}
	s.Mend()
	_, err = s.GetRun(ctx)
	require.NoError(t, err)
	_, err = take(ctx, s, "b")
	require.NoError(t, err)
}

func TestADelayIsWaitedForUnlessTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewFaulty(memory.New(time.Now))
		s.Delay("GetRun", time.Minute)
		begin := time.Now()
		_, err := s.GetRun(t.Context())
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(begin))
		_, err = s.ReadCatalog(t.Context())
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(begin), "others are not delayed")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.GetRun(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute+time.Second, time.Since(begin))
	})
}

func TestAFaultyStoreIsToldWhileItIsUsed(t *testing.T) {
	t.Parallel()
	s := storetest.NewFaulty(memory.New(time.Now))
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for range 50 {
				_, _ = take(t.Context(), s, fmt.Sprint("p", n))
				s.Refuse("CreateSlot", 1, errors.New("broken"))
				s.Lose("*", 1)
				s.Delay("GetRun", time.Microsecond)
				_, _ = s.GetRun(t.Context())
				s.Mend()
			}
		})
	}
	wg.Wait()
}
