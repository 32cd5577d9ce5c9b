package firestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

const (
	commit = "Commit"
	read   = "BatchGetDocuments"
	look   = "RunQuery"
	count  = "RunAggregationQuery"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func external() map[string]any {
	return map[string]any{"mode": "External", "endpoint": map[string]any{"host": "proxy.example.net"}}
}

func leased(n int, lease string) store.Slot {
	return store.Slot{Proxy: "a", N: n, LeaseID: lease, AcquireTime: start, ExpireTime: start.Add(time.Minute)}
}

func asked(key string) *store.Request {
	return &store.Request{Key: key, PayloadHash: "h", LeaseID: "l", ExpireTime: start.Add(time.Hour)}
}

// TestWhatEachCallCosts follows one document, one slot and one run through their lives: each call to the
// store is as many calls to Firestore as stated, in this order.
func TestWhatEachCallCosts(t *testing.T) {
	t.Parallel()
	s, w := open(t)
	ctx := t.Context()
	l := life{s: s}
	for _, step := range []struct {
		name string
		call func(ctx context.Context) error
		cost []string
	}{
		{"taking a slot", l.take, []string{commit}},
		{"taking a slot with a request", func(ctx context.Context) error {
			_, err := s.CreateSlot(ctx, leased(1, "two"), asked("key"))
			return err
		}, []string{commit}},
		{"renewing", l.renew, []string{commit}},
		{"taking over with a request", l.takeOver, []string{commit}},
		{"freeing", func(ctx context.Context) error { return s.DeleteSlot(ctx, l.slot) }, []string{commit}},
		{"reading a slot", func(ctx context.Context) error { _, err := s.GetSlot(ctx, "a", 1); return err }, []string{read}},
		{"a window", func(ctx context.Context) error { _, err := s.SlotsFrom(ctx, "a", "b", 10); return err }, []string{look}},
		{"the slots of a proxy", func(ctx context.Context) error { _, err := s.ProxySlots(ctx, "a"); return err }, []string{look}},
		{"expired slots", func(ctx context.Context) error { _, err := s.ExpiredSlots(ctx, start, 10); return err }, []string{look}},
		{"counting", func(ctx context.Context) error { _, err := s.CountSlots(ctx, start); return err }, []string{count}},
		{"a request", func(ctx context.Context) error { _, err := s.GetRequest(ctx, "key"); return err }, []string{read}},
		{"a ban", func(ctx context.Context) error {
			_, err := s.RecordBan(ctx, "a", "t", "l", start, time.Hour)
			return err
		}, []string{read, commit}},
		{"making a document", l.create, []string{commit, read}},
		{"changing it", func(ctx context.Context) error {
			_, err := s.EditProxy(ctx, "a", store.Edit{Spec: external()}, time.Time{})
			return err
		}, []string{commit, read}},
		{"reading it", l.read, []string{read}},
		{"reading all", func(ctx context.Context) error { _, err := s.ListProxies(ctx); return err }, []string{look}},
		{"its status", l.writeStatus, []string{commit}},
		{"removing it", func(ctx context.Context) error { return s.RemoveProxy(ctx, l.proxy) }, []string{commit}},
		{"a new shard", l.createShard, []string{commit}},
		{"a shard", func(ctx context.Context) error {
			_, err := s.WriteShard(ctx, store.Shard{Version: l.shard}, map[string]fleet.Entry{"b": {}}, []string{"a"})
			return err
		}, []string{commit}},
		{"a verdict", func(ctx context.Context) error { return s.SetVerdict(ctx, 0, "b", fleet.Verdict{Healthy: true}) }, []string{commit}},
		{"a quarantine", func(ctx context.Context) error { return s.SetQuarantine(ctx, 0, "b", "t", start) }, []string{commit}},
		{"the catalog", func(ctx context.Context) error { _, err := s.ReadCatalog(ctx); return err }, []string{look}},
		{"the lock", l.lock, []string{read, commit}},
		{"unlocking", func(ctx context.Context) error { return s.UnlockRun(ctx, l.run) }, []string{commit}},
		{"the last run", func(ctx context.Context) error { _, err := s.GetRun(ctx); return err }, []string{read}},
	} {
		w.took()
		require.NoError(t, step.call(ctx), step.name)
		assert.Equal(t, step.cost, w.took(), step.name)
	}
}

// life carries what one step leaves to the next.
type life struct {
	s     *firestore.Store
	slot  store.Slot
	proxy fleet.Proxy
	shard time.Time
	run   store.Run
}

func (l *life) take(ctx context.Context) (err error) {
	l.slot, err = l.s.CreateSlot(ctx, leased(0, "one"), nil)
	return err
}

func (l *life) renew(ctx context.Context) (err error) {
	l.slot.ExpireTime = l.slot.ExpireTime.Add(time.Minute)
	l.slot, err = l.s.ReplaceSlot(ctx, l.slot, nil)
	return err
}

func (l *life) takeOver(ctx context.Context) (err error) {
	next := leased(0, "three")
	next.Version = l.slot.Version
	l.slot, err = l.s.ReplaceSlot(ctx, next, asked("other"))
	return err
}

func (l *life) create(ctx context.Context) (err error) {
	l.proxy, err = l.s.CreateProxy(ctx, "a", store.Edit{Spec: external()})
	return err
}

func (l *life) read(ctx context.Context) (err error) {
	l.proxy, err = l.s.GetProxy(ctx, "a")
	return err
}

func (l *life) writeStatus(ctx context.Context) (err error) {
	l.proxy.Status.UID = "u"
	l.proxy, err = l.s.WriteStatus(ctx, l.proxy, store.ReconcileFields)
	return err
}

func (l *life) createShard(ctx context.Context) (err error) {
	l.shard, err = l.s.WriteShard(ctx, store.Shard{}, map[string]fleet.Entry{"a": {}}, nil)
	return err
}

func (l *life) lock(ctx context.Context) (err error) {
	l.run, err = l.s.LockRun(ctx, "me", start, time.Minute)
	return err
}
