package health

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestAnOutageOfTheStoreIsReportedAndTheOthersAreRecorded(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	for _, n := range []string{"a", "b", "unreadable", "unwritable"} {
		w.add(n, w.proxy())
	}
	outage := errors.New("outage")
	w.store.on(func(f *flaky) {
		f.failRead = func(name string) error {
			if name == "unreadable" {
				return outage
			}
			return nil
		}
		f.beforeWrite = func(p fleet.Proxy) error {
			if p.Name == "unwritable" {
				return outage
			}
			return nil
		}
	})
	err := w.sweep(0, "a", "unreadable", "unwritable", "b")
	require.ErrorIs(t, err, outage)
	assert.Contains(t, err.Error(), "read proxy unreadable")
	assert.Contains(t, err.Error(), "record health of unwritable")
	assert.True(t, w.get("a").Status.Health.Healthy)
	assert.True(t, w.get("b").Status.Health.Healthy)
}

func TestAPanicOverOneDocumentEndsNothingElse(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy())
	w.add("cursed", w.proxy())
	w.store.on(func(f *flaky) {
		f.failRead = func(name string) error {
			if name == "cursed" {
				panic("unthinkable")
			}
			return nil
		}
	})
	require.ErrorContains(t, w.sweep(0, "cursed", "a"), "probe cursed: panic")
	assert.True(t, w.get("a").Status.Health.Healthy)
	assert.Len(t, w.log.with("unthinkable"), 1)
}

func TestARemovedProxyIsHarmless(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy())
	require.NoError(t, w.sweep(0, "gone", "a"))
	assert.EqualValues(t, 1, w.count("dropped", "gone"))
	w.store.on(func(f *flaky) {
		f.beforeWrite = func(p fleet.Proxy) error { w.memory.Remove(p.Name); return nil }
	})
	require.NoError(t, w.sweep(7, "a"), "not even while it is probed")
	assert.EqualValues(t, 2, w.count("dropped", "gone"))
}

func TestAMalformedDocumentAmongGoodOnesStopsNone(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	names := []string{"broken"}
	w.memory.PutRaw("broken", map[string]any{"spec": map[string]any{"mode": 7, "healthCheck": "daily", "endpoint": []any{}}})
	for i := range 30 {
		name := fmt.Sprintf("p%d", i)
		w.add(name, w.proxy())
		names = append(names, name)
	}
	require.NoError(t, w.sweep(0, names...))
	for _, n := range names[1:] {
		assert.True(t, w.get(n).Status.Health.Healthy, n)
	}
}
