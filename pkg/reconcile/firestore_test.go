package reconcile

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

// openFirestore opens a database of its own on the emulator.
func openFirestore(t testing.TB) *firestore.Store {
	t.Helper()
	if os.Getenv("FIRESTORE_EMULATOR_HOST") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("FIRESTORE_EMULATOR_HOST must be set where CI is: run make test")
		}
		t.Skip("SKIPPED: no Firestore emulator; run make test, or set FIRESTORE_EMULATOR_HOST")
	}
	s, err := firestore.Open(context.Background(), "p-"+uuid.NewString()[:8], "(default)")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

var firestoreSeeds = flag.Int("chaos.firestore", 3, "how many seeds the chaos test runs on Firestore")

// TestChaosOnFirestore runs a few seeds of the same storm on the real store.
func TestChaosOnFirestore(t *testing.T) {
	bad, n := 0, *firestoreSeeds
	if testing.Short() || slower > 1 {
		n = min(n, 1)
	}
	for seed := range n {
		hands := newRemote(openFirestore(t))
		var c *chaos
		synctest.Test(t, func(*testing.T) {
			c = newChaos(uint64(seed)+1, hands)
			c.run(250)
		})
		hands.close()
		if len(c.faults) > 0 {
			bad++
			t.Errorf("seed %d:\n%s", seed+1, strings.Join(c.faults, "\n"))
		}
		t.Logf("seed %d: %d instances, %d leases", seed+1, len(c.made), c.leased)
	}
	fmt.Printf("runs=%d store=firestore broken=%d\n", n, bad)
}

// TestAFleetLivesOnFirestore takes one Proxy from its document to its end.
func TestAFleetLivesOnFirestore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openFirestore(t)
	c := testclock.At(time.Now().UTC().Truncate(time.Microsecond))
	cloud, err := mock.Open(mock.Settings{ProvisionDelay: 30 * time.Second}, mock.WithClock(c.Now), mock.WithoutListener())
	require.NoError(t, err)
	counted := &benchStore{Store: s}
	r := New(Config{Store: counted, Providers: map[string]Account{"main": {Provider: cloud, MaxInstances: 4}}, Owner: testOwner, Database: testDatabase, Now: c.Now})
	tick := func() Summary {
		c.Advance(time.Minute)
		sum, err := r.Run(ctx, c.Now())
		require.NoError(t, err)
		require.Empty(t, sum.Errors, "%+v", sum.Failures)
		proxies, err := s.ListProxies(ctx)
		require.NoError(t, err)
		shards, err := s.ReadCatalog(ctx)
		require.NoError(t, err)
		for _, p := range proxies {
			judge(ctx, s, places(shards), p, false, c.Now())
		}
		return sum
	}
	_, err = s.CreateProxy(ctx, "a", store.Edit{Spec: spec(nil), Labels: map[string]string{"pool": "news"}})
	require.NoError(t, err)
	_, err = s.CreateProxy(ctx, "ext", store.Edit{Spec: map[string]any{"mode": "External", "endpoint": map[string]any{"host": "proxy.example.net"}}})
	require.NoError(t, err)
	require.NoError(t, s.PutRaw(ctx, "bad", map[string]any{"spec": map[string]any{"mode": 7}}))
	for range 4 {
		tick()
	}
	counted.writes.Store(0)
	sum := tick()
	assert.Zero(t, counted.writes.Load(), "at rest nothing is written")
	assert.Equal(t, 2, sum.Ready)

	_, err = s.EditProxy(ctx, "a", store.Edit{RotateTime: c.Now()}, time.Time{})
	require.NoError(t, err)
	for range 8 {
		tick()
	}
	p, err := s.GetProxy(ctx, "a")
	require.NoError(t, err)
	assert.EqualValues(t, 2, p.Status.Instance.Incarnation)
	assert.Nil(t, p.Status.Next)
	assert.Nil(t, p.Status.Drain)
	assert.Len(t, cloud.Instances(), 1)
	shards, err := s.ReadCatalog(ctx)
	require.NoError(t, err)
	assert.True(t, places(shards)["a"].entry.Ready())
	assert.Equal(t, fleet.GateRejected, places(shards)["bad"].entry.Gate)

	for _, name := range []string{"a", "ext", "bad"} {
		_, err = s.EditProxy(ctx, name, store.Edit{DeleteTime: c.Now()}, time.Time{})
		require.NoError(t, err)
	}
	for range 5 {
		tick()
	}
	left, err := s.ListProxies(ctx)
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Empty(t, cloud.Instances())
	shards, err = s.ReadCatalog(ctx)
	require.NoError(t, err)
	assert.Empty(t, places(shards))
}

// remote has every call of a Firestore store made by goroutines outside the bubble in which a chaos
// plays: the client's own must not see the bubble's clock.
type remote struct {
	store.Store
	firestore *firestore.Store
	mu        sync.Mutex
	idle      []worker
}

type worker struct {
	jobs chan func(context.Context)
	done chan struct{}
}

func newRemote(s *firestore.Store) *remote {
	r := &remote{firestore: s}
	for range 32 {
		w := worker{make(chan func(context.Context)), make(chan struct{})}
		r.idle = append(r.idle, w)
		go func() {
			for job := range w.jobs {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				job(ctx)
				cancel()
				w.done <- struct{}{}
			}
		}()
	}
	return r
}

func (r *remote) close() {
	for _, w := range r.idle {
		close(w.jobs)
	}
}

func away[T any](r *remote, call func(context.Context) (T, error)) (out T, err error) {
	r.mu.Lock()
	w := r.idle[len(r.idle)-1]
	r.idle = r.idle[:len(r.idle)-1]
	r.mu.Unlock()
	w.jobs <- func(ctx context.Context) { out, err = call(ctx) }
	<-w.done
	r.mu.Lock()
	r.idle = append(r.idle, w)
	r.mu.Unlock()
	return out, err
}

func nothing(err error) (struct{}, error) { return struct{}{}, err }

func (r *remote) ListProxies(context.Context) ([]fleet.Proxy, error) {
	return away(r, r.firestore.ListProxies)
}

func (r *remote) GetProxy(_ context.Context, name string) (fleet.Proxy, error) {
	return away(r, func(ctx context.Context) (fleet.Proxy, error) { return r.firestore.GetProxy(ctx, name) })
}

func (r *remote) WriteStatus(_ context.Context, p fleet.Proxy, f store.StatusFields) (fleet.Proxy, error) {
	return away(r, func(ctx context.Context) (fleet.Proxy, error) { return r.firestore.WriteStatus(ctx, p, f) })
}

func (r *remote) RemoveProxy(_ context.Context, p fleet.Proxy) error {
	_, err := away(r, func(ctx context.Context) (struct{}, error) { return nothing(r.firestore.RemoveProxy(ctx, p)) })
	return err
}

func (r *remote) CreateProxy(_ context.Context, name string, e store.Edit) (fleet.Proxy, error) {
	return away(r, func(ctx context.Context) (fleet.Proxy, error) { return r.firestore.CreateProxy(ctx, name, e) })
}

func (r *remote) EditProxy(_ context.Context, name string, e store.Edit, v time.Time) (fleet.Proxy, error) {
	return away(r, func(ctx context.Context) (fleet.Proxy, error) { return r.firestore.EditProxy(ctx, name, e, v) })
}

func (r *remote) CreateSlot(_ context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	return away(r, func(ctx context.Context) (store.Slot, error) { return r.firestore.CreateSlot(ctx, s, req) })
}

func (r *remote) DeleteSlot(_ context.Context, s store.Slot) error {
	_, err := away(r, func(ctx context.Context) (struct{}, error) { return nothing(r.firestore.DeleteSlot(ctx, s)) })
	return err
}

func (r *remote) GetSlot(_ context.Context, proxy string, n int) (store.Slot, error) {
	return away(r, func(ctx context.Context) (store.Slot, error) { return r.firestore.GetSlot(ctx, proxy, n) })
}

func (r *remote) ProxySlots(_ context.Context, proxy string) ([]store.Slot, error) {
	return away(r, func(ctx context.Context) ([]store.Slot, error) { return r.firestore.ProxySlots(ctx, proxy) })
}

func (r *remote) SlotsFrom(_ context.Context, from, to string, limit int) ([]store.Slot, error) {
	return away(r, func(ctx context.Context) ([]store.Slot, error) { return r.firestore.SlotsFrom(ctx, from, to, limit) })
}

func (r *remote) ExpiredSlots(_ context.Context, before time.Time, limit int) ([]store.Slot, error) {
	return away(r, func(ctx context.Context) ([]store.Slot, error) { return r.firestore.ExpiredSlots(ctx, before, limit) })
}

func (r *remote) ReadCatalog(context.Context) ([]store.Shard, error) {
	return away(r, r.firestore.ReadCatalog)
}

func (r *remote) WriteShard(_ context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	return away(r, func(ctx context.Context) (time.Time, error) { return r.firestore.WriteShard(ctx, sh, put, drop) })
}

func (r *remote) SetVerdict(_ context.Context, shard int, name string, v fleet.Verdict) error {
	_, err := away(r, func(ctx context.Context) (struct{}, error) {
		return nothing(r.firestore.SetVerdict(ctx, shard, name, v))
	})
	return err
}

func (r *remote) LockRun(_ context.Context, holder string, now time.Time, ttl time.Duration) (store.Run, error) {
	return away(r, func(ctx context.Context) (store.Run, error) { return r.firestore.LockRun(ctx, holder, now, ttl) })
}

func (r *remote) UnlockRun(_ context.Context, run store.Run) error {
	_, err := away(r, func(ctx context.Context) (struct{}, error) { return nothing(r.firestore.UnlockRun(ctx, run)) })
	return err
}

func (r *remote) GetRun(context.Context) (store.Run, error) { return away(r, r.firestore.GetRun) }

func (r *remote) wipe(name string) {
	_, _ = away(r, func(ctx context.Context) (struct{}, error) {
		p, err := r.firestore.GetProxy(ctx, name)
		if err != nil {
			return nothing(err)
		}
		doc := map[string]any{store.FieldSpec: fleet.Encode(p.Spec)}
		if !p.DeleteTime.IsZero() {
			doc[store.FieldDeleteTime] = p.DeleteTime
		}
		if !p.RotateTime.IsZero() {
			doc[store.FieldRotateTime] = p.RotateTime
		}
		return nothing(r.firestore.PutRaw(ctx, name, doc))
	})
}

func (r *remote) remove(name string) {
	if p, err := r.GetProxy(own(), name); err == nil {
		_ = r.RemoveProxy(own(), p)
	}
}
