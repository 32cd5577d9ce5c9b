package storetest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Call is one call of a store.
type Call struct {
	Method string // as in the interface
	Doc    string // the document that it is about, "{collection}/{id}"; a query has the collection only
	Writes int    // documents that it asks to write
	Reads  int    // documents read, as Firestore bills them; known when the call has been made
}

// Around returns s with every call handed to before, and to after once it has been made. An error of
// before is returned instead of making the call. An error of after is returned instead of the result of
// a call that succeeded; err is what the call returned. Either may be nil.
func Around(s store.Store, before func(ctx context.Context, c Call) error, after func(ctx context.Context, c Call, err error) error) store.Store {
	return around{s, before, after}
}

type around struct {
	inner  store.Store
	before func(ctx context.Context, c Call) error
	after  func(ctx context.Context, c Call, err error) error
}

// call makes one call; reads tells what a result has cost.
func call[T any](ctx context.Context, a around, c Call, reads func(out T, err error) int, do func() (T, error)) (T, error) {
	var zero T
	if a.before != nil {
		if err := a.before(ctx, c); err != nil {
			return zero, err
		}
	}
	out, err := do()
	c.Reads = reads(out, err)
	if errors.Is(err, store.ErrLocked) {
		c.Writes = 0 // it looked, and left it at that
	}
	if a.after != nil {
		if lost := a.after(ctx, c, err); lost != nil && err == nil {
			return zero, lost
		}
	}
	return out, err
}

// only is for calls without a result.
func only(ctx context.Context, a around, c Call, reads func(struct{}, error) int, do func() error) error {
	_, err := call(ctx, a, c, reads, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func none[T any](T, error) int { return 0 }

func one[T any](T, error) int { return 1 }

// all: a query costs one read at least.
func all[T any](out []T, _ error) int { return max(1, len(out)) }

// onConflict: a write that finds another version looks at the document.
func onConflict[T any](_ T, err error) int {
	if errors.Is(err, store.ErrConflict) {
		return 1
	}
	return 0
}

func (a around) ListProxies(ctx context.Context) ([]fleet.Proxy, error) {
	return call(ctx, a, Call{Method: "ListProxies", Doc: "proxies"}, all, func() ([]fleet.Proxy, error) { return a.inner.ListProxies(ctx) })
}

func (a around) GetProxy(ctx context.Context, name string) (fleet.Proxy, error) {
	return call(ctx, a, Call{Method: "GetProxy", Doc: "proxies/" + name}, one, func() (fleet.Proxy, error) { return a.inner.GetProxy(ctx, name) })
}

func (a around) WriteStatus(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error) {
	return call(ctx, a, Call{Method: "WriteStatus", Doc: "proxies/" + p.Name, Writes: 1}, onConflict, func() (fleet.Proxy, error) { return a.inner.WriteStatus(ctx, p, fields) })
}

func (a around) RemoveProxy(ctx context.Context, p fleet.Proxy) error {
	return only(ctx, a, Call{Method: "RemoveProxy", Doc: "proxies/" + p.Name, Writes: 1}, onConflict, func() error { return a.inner.RemoveProxy(ctx, p) })
}

func (a around) CreateProxy(ctx context.Context, name string, e store.Edit) (fleet.Proxy, error) {
	return call(ctx, a, Call{Method: "CreateProxy", Doc: "proxies/" + name, Writes: 1}, one, func() (fleet.Proxy, error) { return a.inner.CreateProxy(ctx, name, e) })
}

func (a around) EditProxy(ctx context.Context, name string, e store.Edit, ifVersion time.Time) (fleet.Proxy, error) {
	return call(ctx, a, Call{Method: "EditProxy", Doc: "proxies/" + name, Writes: 1}, one, func() (fleet.Proxy, error) { return a.inner.EditProxy(ctx, name, e, ifVersion) })
}

func slotCall(method, proxy string, n int, req *store.Request) Call {
	c := Call{Method: method, Doc: "slots/" + store.SlotID(proxy, n), Writes: 1}
	if req != nil {
		c.Writes++
	}
	return c
}

func (a around) CreateSlot(ctx context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	return call(ctx, a, slotCall("CreateSlot", s.Proxy, s.N, req), none, func() (store.Slot, error) { return a.inner.CreateSlot(ctx, s, req) })
}

func (a around) ReplaceSlot(ctx context.Context, s store.Slot, req *store.Request) (store.Slot, error) {
	return call(ctx, a, slotCall("ReplaceSlot", s.Proxy, s.N, req), none, func() (store.Slot, error) { return a.inner.ReplaceSlot(ctx, s, req) })
}

func (a around) DeleteSlot(ctx context.Context, s store.Slot) error {
	return only(ctx, a, slotCall("DeleteSlot", s.Proxy, s.N, nil), none, func() error { return a.inner.DeleteSlot(ctx, s) })
}

func (a around) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	c := slotCall("GetSlot", proxy, n, nil)
	c.Writes = 0
	return call(ctx, a, c, one, func() (store.Slot, error) { return a.inner.GetSlot(ctx, proxy, n) })
}

func (a around) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	return call(ctx, a, Call{Method: "SlotsFrom", Doc: "slots"}, all, func() ([]store.Slot, error) { return a.inner.SlotsFrom(ctx, from, to, limit) })
}

func (a around) ProxySlots(ctx context.Context, proxy string) ([]store.Slot, error) {
	return call(ctx, a, Call{Method: "ProxySlots", Doc: "slots"}, all, func() ([]store.Slot, error) { return a.inner.ProxySlots(ctx, proxy) })
}

func (a around) CountSlots(ctx context.Context, liveAt time.Time) (int64, error) {
	reads := func(n int64, _ error) int { return max(1, int(n+999)/1000) } // of index entries, by the thousand
	return call(ctx, a, Call{Method: "CountSlots", Doc: "slots"}, reads, func() (int64, error) { return a.inner.CountSlots(ctx, liveAt) })
}

func (a around) ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]store.Slot, error) {
	return call(ctx, a, Call{Method: "ExpiredSlots", Doc: "slots"}, all, func() ([]store.Slot, error) { return a.inner.ExpiredSlots(ctx, before, limit) })
}

func (a around) GetRequest(ctx context.Context, key string) (store.Request, error) {
	return call(ctx, a, Call{Method: "GetRequest", Doc: "requests/" + key}, one, func() (store.Request, error) { return a.inner.GetRequest(ctx, key) })
}

func (a around) RecordBan(ctx context.Context, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error) {
	return call(ctx, a, Call{Method: "RecordBan", Doc: "bans/" + proxy + " " + target, Writes: 1}, one, func() (int, error) {
		return a.inner.RecordBan(ctx, proxy, target, leaseID, at, window)
	})
}

func (a around) ReadCatalog(ctx context.Context) ([]store.Shard, error) {
	return call(ctx, a, Call{Method: "ReadCatalog", Doc: "catalog"}, all, func() ([]store.Shard, error) { return a.inner.ReadCatalog(ctx) })
}

func shardCall(method string, id int) Call {
	return Call{Method: method, Doc: "catalog/" + strconv.Itoa(id), Writes: 1}
}

func (a around) WriteShard(ctx context.Context, s store.Shard, put map[string]fleet.Entry, drop []string) (time.Time, error) {
	return call(ctx, a, shardCall("WriteShard", s.ID), none, func() (time.Time, error) { return a.inner.WriteShard(ctx, s, put, drop) })
}

func (a around) SetVerdict(ctx context.Context, shard int, name string, v fleet.Verdict) error {
	return only(ctx, a, shardCall("SetVerdict", shard), none, func() error { return a.inner.SetVerdict(ctx, shard, name, v) })
}

func (a around) SetQuarantine(ctx context.Context, shard int, name, target string, until time.Time) error {
	return only(ctx, a, shardCall("SetQuarantine", shard), none, func() error { return a.inner.SetQuarantine(ctx, shard, name, target, until) })
}

func (a around) LockRun(ctx context.Context, holder string, now time.Time, ttl time.Duration) (store.Run, error) {
	return call(ctx, a, Call{Method: "LockRun", Doc: "runs/reconcile", Writes: 1}, one, func() (store.Run, error) { return a.inner.LockRun(ctx, holder, now, ttl) })
}

func (a around) UnlockRun(ctx context.Context, r store.Run) error {
	return only(ctx, a, Call{Method: "UnlockRun", Doc: "runs/reconcile", Writes: 1}, onConflict, func() error { return a.inner.UnlockRun(ctx, r) })
}

func (a around) GetRun(ctx context.Context) (store.Run, error) {
	return call(ctx, a, Call{Method: "GetRun", Doc: "runs/reconcile"}, one, func() (store.Run, error) { return a.inner.GetRun(ctx) })
}
