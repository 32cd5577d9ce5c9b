package reconcile

import (
	"context"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// recordingProber remembers what it was told to probe.
type recordingProber struct {
	mu   sync.Mutex
	runs [][]Target
	err  error
	when func() // called when results are collected
}

func (p *recordingProber) Start(_ context.Context, _ time.Time, targets []Target) (int, func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, targets)
	return len(targets), func(context.Context) error {
		if p.when != nil {
			p.when()
		}
		return p.err
	}
}

func (p *recordingProber) all() []Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Target
	for _, r := range p.runs {
		out = append(out, r...)
	}
	return out
}

func (p *recordingProber) last() []Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[len(p.runs)-1]
}

// privateCloud is a cloud whose instances have no address that crawlers reach.
type privateCloud struct{ provider.Provider }

func (c privateCloud) Create(ctx context.Context, req provider.CreateRequest) (provider.Instance, error) {
	i, err := c.Provider.Create(ctx, req)
	i.Address = ""
	return i, err
}

func (c privateCloud) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	i, err := c.Provider.Get(ctx, ref)
	i.Address = ""
	return i, err
}

func (c privateCloud) ListByTag(ctx context.Context, tag string) ([]provider.Instance, error) {
	all, err := c.Provider.ListByTag(ctx, tag)
	for n := range all {
		all[n].Address = ""
	}
	return all, err
}
