package gce

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
)

func TestAnEndedContextPassesUnchanged(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.provider.Create(ended, request("proxy-a"))
	assert.Equal(t, context.Canceled, err)
	_, err = c.provider.Get(ended, request("proxy-a").Ref())
	assert.Equal(t, context.Canceled, err)
	assert.Equal(t, context.Canceled, c.provider.Delete(ended, request("proxy-a").Ref()))
	_, err = c.provider.ListByTag(ended, owner)
	assert.Equal(t, context.Canceled, err)
	assert.Empty(t, c.Calls())
}

func TestADeadlineEndsEveryCallUnderWay(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *Provider) error{
		"create": func(ctx context.Context, p *Provider) error { _, err := p.Create(ctx, request("proxy-a")); return err },
		"get": func(ctx context.Context, p *Provider) error {
			_, err := p.Get(ctx, request("proxy-a").Ref())
			return err
		},
		"delete": func(ctx context.Context, p *Provider) error { return p.Delete(ctx, request("proxy-a").Ref()) },
		"list":   func(ctx context.Context, p *Provider) error { _, err := p.ListByTag(ctx, owner); return err },
		"get by operation": func(ctx context.Context, p *Provider) error {
			_, err := p.Get(ctx, provider.Ref{Name: "proxy-a", Zone: zone, Operation: zone + "/operation-1"})
			return err
		},
	}
	slow := map[string]emulator.Method{
		"create": emulator.Insert, "get": emulator.Get, "delete": emulator.Get, "list": emulator.AggregatedList,
		"get by operation": emulator.GetOperation,
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCloud(t, emulator.Options{}, Settings{})
			c.Inject(emulator.Fault{Method: slow[name], Delay: time.Hour})
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			begun := time.Now()
			err := call(ctx, c.provider)
			assert.Equal(t, context.DeadlineExceeded, err)
			assert.Less(t, time.Since(begun), 5*time.Second)
		})
	}
}

func TestASlowCloudIsTransient(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{RequestTimeout: time.Second})
	c.Inject(emulator.Fault{Delay: time.Hour})
	for name, call := range map[string]func() error{
		"get":  func() error { _, err := c.provider.Get(t.Context(), request("proxy-a").Ref()); return err },
		"list": func() error { _, err := c.provider.ListByTag(t.Context(), owner); return err },
	} {
		err := call()
		require.Error(t, err, name)
		assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), name)
		assert.NotErrorIs(t, err, context.DeadlineExceeded, "%s: the caller's own deadline has not passed", name)
	}
}
