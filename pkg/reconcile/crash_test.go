package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

var errDead = errors.New("the process is dead")

// crashing is a store in the hands of a process that dies at one point, after which nothing it calls
// has any effect.
type crashing struct {
	Store
	after string
	died  atomic.Bool
}

func (c *crashing) dead() bool { return c.died.Load() }

func (c *crashing) WriteStatus(ctx context.Context, p fleet.Proxy, f store.StatusFields) (fleet.Proxy, error) {
	if c.dead() {
		return p, errDead
	}
	out, err := c.Store.WriteStatus(ctx, p, f)
	if c.after == "after the intent" {
		c.died.Store(true)
	}
	return out, err
}

func (c *crashing) UnlockRun(ctx context.Context, r store.Run) error {
	if c.dead() {
		return errDead
	}
	return c.Store.UnlockRun(ctx, r)
}

func (c *crashing) WriteShard(ctx context.Context, sh store.Shard, put map[string]fleet.Entry, drop []string) (t time.Time, err error) {
	if c.dead() {
		return t, errDead
	}
	return c.Store.WriteShard(ctx, sh, put, drop)
}

// crashingCloud is the cloud as that process sees it.
type crashingCloud struct {
	provider.Provider
	process *crashing
}

func (c crashingCloud) Create(ctx context.Context, req provider.CreateRequest) (provider.Instance, error) {
	if c.process.dead() {
		return provider.Instance{}, errDead
	}
	i, err := c.Provider.Create(ctx, req)
	if c.process.after == "after the create" {
		c.process.died.Store(true)
		return provider.Instance{}, errDead
	}
	return i, err
}
