package health

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestBlackHolesDoNotHoldUpTheOthers(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	var names []string
	for i := range 100 {
		b := w.proxy()
		if i%5 < 2 {
			b.be(until)
		}
		name := fmt.Sprintf("p%d", i)
		w.add(name, b, func(_ *fleet.Proxy, spec map[string]any) {
			spec["healthCheck"].(map[string]any)["timeoutSeconds"] = int64(1)
		})
		names = append(names, name)
	}
	began := time.Now()
	require.NoError(t, w.sweep(0, names...))
	assert.Less(t, time.Since(began), 15*time.Second, "one after the other they would take 40 s")
	assert.EqualValues(t, 40, w.count("probes", "connect_timeout"))
	assert.EqualValues(t, 60, w.count("probes", "ok"))
}

func TestProbesAtOnceAreBounded(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.sweeper.places = make(chan struct{}, 2)
	var mu sync.Mutex
	now, most := 0, 0
	var names []string
	for i := range 12 {
		b := w.proxy()
		b.be(func(c net.Conn) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			forward(c)
			mu.Lock()
			now--
			mu.Unlock()
		})
		name := fmt.Sprintf("p%d", i)
		w.add(name, b)
		names = append(names, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	m := Message{Tick: at(0)}
	for _, n := range names {
		m.Proxies = append(m.Proxies, Target{Name: n})
	}
	require.NoError(t, w.sweeper.Sweep(ctx, m), "places are given back")
	assert.EqualValues(t, 12, w.count("probes", "ok"))
	mu.Lock()
	defer mu.Unlock()
	// A proxy may see its connection close a moment after the next probe has begun.
	assert.LessOrEqual(t, most, 4)
}

func TestASweepThatRunsOutOfTimeIsReportedAndBlamesNobody(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	b := w.proxy()
	ctx, cancel := context.WithCancel(t.Context())
	b.be(func(c net.Conn) { cancel(); until(c) })
	w.add("a", b)
	err := w.sweeper.Sweep(ctx, Message{Tick: at(0), Proxies: []Target{{Name: "a"}}})
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, w.get("a").Status.Health)
}
