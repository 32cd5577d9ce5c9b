package health

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestWhenTheTargetIsDownNoVerdictChangesAndOneLineSaysSo(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	var names []string
	for i := range 20 {
		name := fmt.Sprintf("p%d", i)
		w.add(name, w.proxy())
		names = append(names, name)
	}
	unproven := w.proxy()
	unproven.be(broken)
	w.add("unproven", unproven)
	require.NoError(t, w.sweep(0, names...))
	var before []fleet.Proxy
	for _, n := range names {
		before = append(before, w.get(n))
	}

	w.down.Store(true)
	writes := w.store.writes.Load()
	for minute := 1; minute <= 10; minute++ {
		require.NoError(t, w.sweep(minute, append(names, "unproven")...))
		assert.EqualValues(t, minute, w.count("judgeDown", ""), "once per tick")
		assert.Len(t, w.log.with("down for everyone"), minute, "one line per tick")
	}
	for i, n := range names {
		assert.Equal(t, before[i], w.get(n))
		assert.True(t, w.entry(n).Verdict.Healthy)
	}
	assert.Equal(t, writes, w.store.writes.Load())
	assert.EqualValues(t, 210, w.count("probes", "inconclusive"))

	w.down.Store(false)
	require.NoError(t, w.sweep(11, append(names, "unproven")...))
	assert.EqualValues(t, 1, w.get("unproven").Status.Health.ConsecutiveFailures, "now it is the proxy")
}

func TestWhatIsSurelyTheProxysFaultCountsWhileTheTargetIsDown(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	locked := w.proxy()
	locked.be(reply("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"))
	w.add("locked", locked)
	w.add("dead", &backend{host: "127.0.0.1", port: 1})
	w.down.Store(true)
	require.NoError(t, w.sweep(0, "locked", "dead"))
	assert.Equal(t, fleet.OutcomeAuthFailed, w.get("locked").Status.Health.Outcome)
	assert.Equal(t, fleet.OutcomeRefused, w.get("dead").Status.Health.Outcome)
	assert.Zero(t, w.visits.Load(), "there is nothing to ask the target about")
}

func TestTheTargetIsLookedAtOncePerTick(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	var names []string
	for i := range 30 {
		name := fmt.Sprintf("p%d", i)
		b := w.proxy()
		b.be(broken)
		w.add(name, b)
		names = append(names, name)
	}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() { assert.NoError(t, w.sweep(0, names[10*i:10*i+10]...)) })
	}
	wg.Wait()
	assert.EqualValues(t, 1, w.visits.Load(), "however many proxies fail, in however many messages")
	require.NoError(t, w.sweep(1, names...))
	assert.EqualValues(t, 2, w.visits.Load())
}

func TestChecksOfOneTargetShareTheLookAndJudgeItThemselves(t *testing.T) {
	leaveNothing(t)
	var visits atomic.Int32
	url := servePlain(t, func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("a marker"))
	}).URL
	c := newControl(&Prober{}, time.Now)
	check := func(change func(*fleet.HealthCheck)) bool {
		h := defaults(func(h *fleet.HealthCheck) { h.URL = url }, change)
		down, _, err := c.down(t.Context(), start, h)
		require.NoError(t, err)
		return down
	}
	assert.True(t, check(func(h *fleet.HealthCheck) { h.ExpectedStatus = 204 }))
	assert.False(t, check(func(h *fleet.HealthCheck) { h.ExpectedStatus = 403 }))
	assert.False(t, check(func(h *fleet.HealthCheck) { h.ExpectedStatus, h.BodyContains = 403, "marker" }))
	assert.True(t, check(func(h *fleet.HealthCheck) { h.ExpectedStatus, h.BodyContains = 403, "another" }))
	assert.EqualValues(t, 1, visits.Load())
}

func TestATargetSlowerThanTheCheckAllowsIsDownForThatCheck(t *testing.T) {
	t.Parallel()
	c := newControl(&Prober{}, time.Now)
	done := make(chan struct{})
	close(done)
	c.fetches[controlKey{tick: start, url: "http://slow.example"}] = &fetch{done: done, began: time.Now(), answer: answer{code: 204}, latency: 3 * time.Second}
	for seconds, want := range map[int32]bool{1: true, 5: false} {
		down, _, err := c.down(t.Context(), start, defaults(func(h *fleet.HealthCheck) { h.URL, h.TimeoutSeconds = "http://slow.example", seconds }))
		require.NoError(t, err)
		assert.Equal(t, want, down, "timeout of %d s", seconds)
	}
}

func TestAMessageDeliveredMuchLaterGetsAnotherLook(t *testing.T) {
	leaveNothing(t)
	var up atomic.Bool
	url := servePlain(t, func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}).URL
	now := start
	c := newControl(&Prober{}, func() time.Time { return now })
	down := func() bool {
		down, _, err := c.down(t.Context(), start, defaults(func(h *fleet.HealthCheck) { h.URL, h.ExpectedStatus = url, 0 }))
		require.NoError(t, err)
		return down
	}
	assert.True(t, down())
	up.Store(true)
	now = at(1)
	assert.True(t, down(), "within a tick one look is enough")
	now = at(5)
	assert.False(t, down())
}

func TestALookGoesOnWithoutTheCallerThatBeganIt(t *testing.T) {
	leaveNothing(t)
	arrived, proceed := make(chan struct{}), make(chan struct{})
	url := servePlain(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-proceed
		w.WriteHeader(http.StatusNoContent)
	}).URL
	c := newControl(&Prober{}, time.Now)
	check := defaults(func(h *fleet.HealthCheck) { h.URL, h.ExpectedStatus = url, 204 })
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := c.down(ctx, start, check)
		assert.ErrorIs(t, err, context.Canceled)
	})
	<-arrived
	leave()
	wg.Wait()
	close(proceed)
	down, _, err := c.down(t.Context(), start, check)
	require.NoError(t, err)
	assert.False(t, down)
}

func TestLooksAtTargetsAreForgottenInTime(t *testing.T) {
	leaveNothing(t)
	url := servePlain(t, noContent).URL
	now := start
	c := newControl(&Prober{}, func() time.Time { return now })
	for i := range 100 {
		now = at(i)
		_, _, err := c.down(t.Context(), at(i), defaults(func(h *fleet.HealthCheck) { h.URL = url }))
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, len(c.fetches), 3)
}
