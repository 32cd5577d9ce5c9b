package health

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// flaky is a store that fails on request, and counts what health writes.
type flaky struct {
	store.Store
	writes, verdicts atomic.Int32

	mu          sync.Mutex
	failRead    func(name string) error
	beforeWrite func(p fleet.Proxy) error // an error is returned instead of writing
	failVerdict error                     // once
}

func (f *flaky) on(set func(*flaky)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(f)
}

func (f *flaky) GetProxy(ctx context.Context, name string) (fleet.Proxy, error) {
	f.mu.Lock()
	fail := f.failRead
	f.mu.Unlock()
	if fail != nil {
		if err := fail(name); err != nil {
			return fleet.Proxy{}, err
		}
	}
	return f.Store.GetProxy(ctx, name)
}

func (f *flaky) WriteStatus(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error) {
	f.mu.Lock()
	before := f.beforeWrite
	f.mu.Unlock()
	if before != nil {
		if err := before(p); err != nil {
			return p, err
		}
	}
	p, err := f.Store.WriteStatus(ctx, p, fields)
	if err == nil {
		f.writes.Add(1)
	}
	return p, err
}

func (f *flaky) SetVerdict(ctx context.Context, shard int, name string, v fleet.Verdict) error {
	f.mu.Lock()
	fail := f.failVerdict
	f.failVerdict = nil
	f.mu.Unlock()
	if fail != nil {
		return fail
	}
	f.verdicts.Add(1)
	return f.Store.SetVerdict(ctx, shard, name, v)
}

// lines keeps a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// with returns the lines that contain text.
func (l *lines) with(text string) []string {
	var out []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}
