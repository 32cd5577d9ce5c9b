// Package gce runs proxies as Compute Engine instances.
//
// A name is an instance, and labels say whose it is: nothing without the owner label is ever touched.
// Create asks and returns; what becomes of it later is read from the instance or, where that never
// appeared, from the operation that should have made it. Every error of the cloud goes through one
// table (classify.go). User data may be secret: it goes into the instance's metadata and nowhere else.
package gce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Provider is one project of Compute Engine. Its methods are those of provider.Provider; it is safe
// for concurrent use and opens its connection with the first call.
type Provider struct {
	settings settings
	now      func() time.Time

	mu     sync.Mutex
	client *client // nil until the first call
}

var _ provider.Provider = (*Provider)(nil)

// New returns the provider of a providers file entry of type gcp. It checks the gcp block and names
// all its faults, but calls nothing: credentials are looked for with the first call.
func New(_ context.Context, c provider.Config) (provider.Provider, error) {
	var block Settings
	var faults provider.ConfigFaults
	if err := c.Decode(&block); err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	s, wrong := block.resolve()
	for _, f := range wrong {
		key := c.Type + "." + f.field
		unread := func(other provider.ConfigFault) bool { return other.Key == key }
		if !slices.ContainsFunc(faults, unread) { // what could not be read is not missing
			faults = append(faults, c.Fault(key, f.message))
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return &Provider{settings: s, now: time.Now}, nil
}

// Open is New for a block that is at hand, with the clock that rate limits are told by.
func Open(block Settings, now func() time.Time) (*Provider, error) {
	s, wrong := block.resolve()
	var faults []error
	for _, f := range wrong {
		faults = append(faults, fmt.Errorf("gcp.%s: %s", f.field, f.message))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return &Provider{settings: s, now: now}, nil
}

// Close gives up idle connections. Calls made later open new ones.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		p.client.close()
		p.client = nil
	}
	return nil
}

// connect returns the client, opening it when this is the first call that succeeds in it.
func (p *Provider) connect(ctx context.Context) (*client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		c, err := open(ctx, p.settings)
		if err != nil {
			return nil, &provider.Error{Class: provider.ErrTransient, Op: "open", Name: p.settings.Project, Err: err}
		}
		p.client = c
	}
	return p.client, nil
}
