package health

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func TestAMessageDeliveredTwiceCountsOnce(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	b := w.proxy()
	w.add("a", b)
	require.NoError(t, w.sweep(0, "a"))
	b.be(broken)
	for range 5 {
		require.NoError(t, w.sweep(1, "a"))
	}
	assert.EqualValues(t, 1, w.get("a").Status.Health.ConsecutiveFailures)
	assert.EqualValues(t, 2, b.asked.Load(), "what has been counted is not probed again")
	assert.EqualValues(t, 4, w.count("dropped", "stale"))
	assert.EqualValues(t, 1, w.store.verdicts.Load(), "where nothing flipped the catalog is left alone")

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { assert.NoError(t, w.sweep(2, "a")) })
	}
	wg.Wait()
	assert.EqualValues(t, 2, w.get("a").Status.Health.ConsecutiveFailures, "not even at once")
	assert.True(t, w.get("a").Status.Health.Healthy)
}

func TestAResultOlderThanTheStoredOneIsIgnored(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	b := w.proxy()
	w.add("a", b)
	require.NoError(t, w.sweep(7, "a"))
	b.be(broken)
	for minute := range 7 {
		require.NoError(t, w.sweep(minute, "a"))
	}
	h := w.get("a").Status.Health
	assert.Equal(t, at(7), h.Tick)
	assert.Zero(t, h.ConsecutiveFailures)
	assert.EqualValues(t, 1, w.store.writes.Load())
}

func TestACrashBetweenDocumentAndCatalogIsMendedByTheNextDelivery(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	b := w.proxy()
	w.add("a", b)
	outage := errors.New("outage")
	w.store.on(func(f *flaky) { f.failVerdict = outage })
	require.ErrorIs(t, w.sweep(0, "a"), outage)
	assert.True(t, w.get("a").Status.Health.Healthy)
	assert.False(t, w.entry("a").Verdict.Healthy)

	w.restart()
	require.NoError(t, w.sweep(0, "a"))
	assert.Equal(t, fleet.VerdictOf(w.get("a")), w.entry("a").Verdict)
	assert.True(t, w.entry("a").Verdict.Healthy)
	assert.EqualValues(t, 1, b.asked.Load())
	assert.EqualValues(t, 1, w.store.writes.Load())
}

func TestACrashOfAnotherDeliveryIsMendedByTheOneThatComesSecond(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy())
	w.store.on(func(f *flaky) {
		f.beforeWrite = func(p fleet.Proxy) error { // the other delivery gets as far as the document
			p.Status.Health.LatencyMs += 7
			_, err := w.store.Store.WriteStatus(t.Context(), p, store.HealthFields)
			return err
		}
	})
	require.NoError(t, w.sweep(0, "a"))
	assert.True(t, w.entry("a").Verdict.Healthy)
	assert.EqualValues(t, 1, w.get("a").Status.Health.ConsecutiveSuccesses)
	assert.Zero(t, w.store.writes.Load())
}

func TestAMissingShardIsHarmless(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy())
	w.add("b", w.proxy())
	require.NoError(t, w.sweeper.Sweep(t.Context(), Message{Tick: at(0), Proxies: []Target{{Name: "a", Shard: 7}, {Name: "b", Shard: -1}}}))
	assert.True(t, w.get("a").Status.Health.Healthy)
	assert.True(t, w.get("b").Status.Health.Healthy)
	assert.EqualValues(t, 1, w.store.verdicts.Load(), "without a shard there is nothing to tell")
}
