package reconcile

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

// benchStore counts documents read and written. The run lock, one read and two writes a run, is
// counted apart.
type benchStore struct {
	Store
	reads, writes, catalog, lock atomic.Int64
}

func (b *benchStore) ListProxies(ctx context.Context) ([]fleet.Proxy, error) {
	out, err := b.Store.ListProxies(ctx)
	b.reads.Add(int64(len(out)))
	return out, err
}

func (b *benchStore) GetProxy(ctx context.Context, name string) (fleet.Proxy, error) {
	b.reads.Add(1)
	return b.Store.GetProxy(ctx, name)
}

func (b *benchStore) WriteStatus(ctx context.Context, p fleet.Proxy, f store.StatusFields) (fleet.Proxy, error) {
	b.writes.Add(1)
	return b.Store.WriteStatus(ctx, p, f)
}

func (b *benchStore) RemoveProxy(ctx context.Context, p fleet.Proxy) error {
	b.writes.Add(1)
	return b.Store.RemoveProxy(ctx, p)
}

func (b *benchStore) DeleteSlot(ctx context.Context, s store.Slot) error {
	b.writes.Add(1)
	return b.Store.DeleteSlot(ctx, s)
}

func (b *benchStore) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	out, err := b.Store.ReadCatalog(ctx)
	b.catalog.Add(int64(len(out)))
	return out, err
}

func (b *benchStore) WriteShard(ctx context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	b.writes.Add(1)
	return b.Store.WriteShard(ctx, sh, put, drop)
}

func (b *benchStore) LockRun(ctx context.Context, h string, now time.Time, ttl time.Duration) (store.Run, error) {
	b.lock.Add(2)
	return b.Store.LockRun(ctx, h, now, ttl)
}

func (b *benchStore) UnlockRun(ctx context.Context, r store.Run) error {
	b.lock.Add(1)
	return b.Store.UnlockRun(ctx, r)
}

// BenchmarkReconcile brings fleets up and then measures a run in which nothing is to be done. It
// prints one line for each run, whatever -benchtime says.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("memory/%d", n), func(b *testing.B) {
			c := testclock.At(start)
			benchmark(b, "memory", n, memory.New(c.Now), c)
		})
	}
	b.Run("firestore/1000", func(b *testing.B) {
		benchmark(b, "firestore", 1000, openFirestore(b), testclock.At(start))
	})
}

func benchmark(b *testing.B, name string, n int, s store.Store, c *testclock.Clock) {
	ctx := context.Background()
	cloud, err := mock.Open(mock.Settings{ProvisionDelay: 30 * time.Second}, mock.WithClock(c.Now), mock.WithoutListener())
	if err != nil {
		b.Fatal(err)
	}
	var g errgroup.Group
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error {
			_, err := s.CreateProxy(ctx, fmt.Sprintf("p%05d", i), store.Edit{Spec: spec(nil), Labels: map[string]string{"pool": "bench"}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	counted := &benchStore{Store: s}
	r := New(Config{Store: counted, Providers: map[string]Account{"main": {Provider: cloud}}, Owner: testOwner, Database: testDatabase, Now: c.Now})
	run := func(what string) {
		counted.reads.Store(0)
		counted.writes.Store(0)
		counted.catalog.Store(0)
		counted.lock.Store(0)
		before := cloud.Calls()
		begin := time.Now()
		sum, err := r.Run(ctx, c.Now())
		if err != nil || len(sum.Errors) > 0 {
			b.Fatal(err, sum.Failures)
		}
		calls := cloud.Calls()
		pages := calls.ListPages - before.ListPages
		fmt.Fprintf(os.Stdout, "\nreconcile_bench proxies=%d store=%s seconds=%.3f reads=%d writes=%d provider_calls=%d run=%s list_pages=%d catalog_reads=%d lock_rpcs=%d\n",
			n, name, time.Since(begin).Seconds(), counted.reads.Load(), counted.writes.Load(),
			calls.Total()-before.Total()-(calls.List-before.List)+pages, what, pages, counted.catalog.Load(), counted.lock.Load())
	}
	run("create")
	c.Advance(time.Minute)
	run("observe")
	judgeEvery(b, s, c)
	c.Advance(time.Minute)
	run("settle")
	c.Advance(time.Minute)
	run("steady")
	for b.Loop() {
		c.Advance(time.Minute)
		if _, err := r.Run(ctx, c.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

func judgeEvery(b *testing.B, s store.Store, c *testclock.Clock) {
	proxies, err := s.ListProxies(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	var g errgroup.Group
	g.SetLimit(64)
	for _, p := range proxies {
		g.Go(func() error {
			p.Status.Health = verdictOn(p.Status.Health, p.Status.Endpoint.Incarnation, false, c.Now())
			p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionHealthy, Status: true, Reason: "ProbesPass"}, c.Now())
			p.Status.Conditions.Set(fleet.ReadyCondition(p), c.Now())
			_, err := s.WriteStatus(context.Background(), p, store.HealthFields)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}
