package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func TestASweepRecordsTheVerdictAndTellsTheCatalogAtOnce(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	good, bad := w.proxy(), w.proxy()
	bad.be(broken)
	w.add("good", good)
	w.add("bad", bad)
	for minute := range 4 {
		require.NoError(t, w.sweep(minute, "good", "bad"))
	}

	p := w.get("good")
	assert.True(t, p.Status.Health.Healthy)
	assert.Equal(t, at(0), p.Status.Health.LastProbeTime)
	ready, _ := p.Status.Conditions.Get(fleet.ConditionReady)
	assert.True(t, ready.Status, ready.Message)
	healthy, _ := p.Status.Conditions.Get(fleet.ConditionHealthy)
	assert.Equal(t, fleet.Condition{Type: fleet.ConditionHealthy, Status: true, Reason: "ProbesPass", LastTransitionTime: at(0)}, healthy)
	assert.Equal(t, fleet.Verdict{Healthy: true, Outcome: fleet.OutcomeOK, Since: at(0)}, w.entry("good").Verdict)
	assert.Equal(t, good.host, w.entry("good").Host, "the rest of the entry stays")

	p = w.get("bad")
	assert.False(t, p.Status.Health.Healthy)
	assert.Equal(t, fleet.OutcomeStatusMismatch, p.Status.Health.Outcome)
	assert.EqualValues(t, 3, p.Status.Health.ConsecutiveFailures)
	assert.Equal(t, at(2), p.Status.Health.UnhealthySince)
	healthy, _ = p.Status.Conditions.Get(fleet.ConditionHealthy)
	assert.Equal(t, "StatusMismatch", healthy.Reason)
	assert.Contains(t, healthy.Message, "502")
	ready, _ = p.Status.Conditions.Get(fleet.ConditionReady)
	assert.False(t, ready.Status)

	assert.Len(t, w.log.with("verdict flipped"), 1, "one line per flip: %s", w.log)
	assert.EqualValues(t, 1, w.count("flips", "healthy"))
	assert.EqualValues(t, 4, w.count("probes", "ok"))

	good.be(broken)
	for minute := 4; minute < 7; minute++ {
		require.NoError(t, w.sweep(minute, "good"))
	}
	assert.Equal(t, fleet.Verdict{Outcome: fleet.OutcomeStatusMismatch, Since: at(6)}, w.entry("good").Verdict)
	assert.Len(t, w.log.with("verdict flipped"), 2)
}

func TestASteadySweepWritesNothingButHeartbeats(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	names := []string{"a", "b", "c", "down"}
	for _, n := range names {
		b := w.proxy()
		if n == "down" {
			b.be(broken)
		}
		w.add(n, b)
	}
	for minute := range 3 {
		require.NoError(t, w.sweep(minute, names...))
	}
	before := w.store.writes.Load()
	for minute := 3; minute < 5; minute++ {
		require.NoError(t, w.sweep(minute, names...))
	}
	assert.Equal(t, before, w.store.writes.Load())
	require.NoError(t, w.sweep(5, names...))
	assert.Equal(t, before+3, w.store.writes.Load(), "one heartbeat each, five minutes after the last record")
	require.NoError(t, w.sweep(7, names...))
	assert.Equal(t, before+4, w.store.writes.Load())
	assert.EqualValues(t, 3, w.store.verdicts.Load(), "the catalog hears of flips only")
}

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

func TestALostFirstWriteIsJudgedAnewOnTheNewVersion(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	for _, n := range []string{"a", "b"} {
		w.add(n, w.proxy())
	}
	lost := map[string]bool{}
	var mu sync.Mutex
	w.store.on(func(f *flaky) {
		f.beforeWrite = func(p fleet.Proxy) error {
			mu.Lock()
			defer mu.Unlock()
			if lost[p.Name] {
				return nil
			}
			lost[p.Name] = true
			other := w.get(p.Name) // a run writes its own fields meanwhile
			other.Status.Phase = fleet.PhaseRunning
			other.Status.AddEvent(at(0), "Seen", "")
			_, err := w.store.Store.WriteStatus(t.Context(), other, store.ReconcileFields)
			return err
		}
	})
	require.NoError(t, w.sweep(0, "a", "b"))
	for _, n := range []string{"a", "b"} {
		p := w.get(n)
		assert.True(t, p.Status.Health.Healthy)
		assert.EqualValues(t, 1, p.Status.Health.ConsecutiveSuccesses)
		assert.Equal(t, fleet.PhaseRunning, p.Status.Phase, "the other writer's fields are not lost")
		assert.Len(t, p.Status.Events, 1)
		assert.True(t, w.entry(n).Verdict.Healthy)
	}
}

func TestAWriteThatKeepsLosingIsReportedForRedelivery(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy())
	w.store.on(func(f *flaky) { f.beforeWrite = func(fleet.Proxy) error { return store.ErrConflict } })
	require.ErrorIs(t, w.sweep(0, "a"), store.ErrConflict)
}

func TestAResultForAFormerInstanceIsDropped(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy(), managed(3))
	m := Message{Tick: at(0), Proxies: []Target{{Name: "a", Incarnation: 2}, {Name: "a", Incarnation: 4}, {Name: "a"}}}
	require.NoError(t, w.sweeper.Sweep(t.Context(), m))
	assert.Zero(t, w.get("a").Status.Health)
	assert.EqualValues(t, 3, w.count("dropped", "foreign"))

	t.Run("also when the instance is replaced while it is probed", func(t *testing.T) {
		w.store.on(func(f *flaky) {
			f.beforeWrite = func(p fleet.Proxy) error {
				other := w.get("a")
				other.Status.Endpoint.Incarnation = 4
				_, err := w.store.Store.WriteStatus(t.Context(), other, store.AllFields)
				return errors.Join(err, store.ErrConflict)
			}
		})
		require.NoError(t, w.sweeper.Sweep(t.Context(), Message{Tick: at(1), Proxies: []Target{{Name: "a", Incarnation: 3}}}))
		assert.Zero(t, w.get("a").Status.Health)
		assert.EqualValues(t, 4, w.count("dropped", "foreign"))
	})
}

func TestTheSuccessorIsProbedBesideTheEndpointAndJudgedByItself(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy(), managed(1), func(p *fleet.Proxy, _ map[string]any) {
		p.Status.Next = &fleet.Instance{Name: "vm-2", Incarnation: 2, Address: "127.0.0.9"} // nothing listens there
	})
	both := func(minute int) error {
		w.at(at(minute))
		return w.sweeper.Sweep(t.Context(), Message{Tick: at(minute), Proxies: []Target{{Name: "a", Incarnation: 1}, {Name: "a", Incarnation: 2, Next: true}}})
	}
	require.NoError(t, both(0))
	p := w.get("a")
	assert.True(t, p.Status.Health.Healthy)
	assert.EqualValues(t, 1, p.Status.Health.Incarnation)
	assert.Equal(t, fleet.OutcomeRefused, p.Status.NextHealth.Outcome)
	assert.EqualValues(t, 2, p.Status.NextHealth.Incarnation)
	verdicts := w.store.verdicts.Load()

	p.Status.Next.Address = "127.0.0.1"
	_, err := w.store.Store.WriteStatus(t.Context(), p, store.ReconcileFields)
	require.NoError(t, err)
	require.NoError(t, both(1))
	p = w.get("a")
	assert.True(t, p.Status.NextHealth.Healthy)
	assert.Equal(t, verdicts, w.store.verdicts.Load(), "the catalog is about the endpoint")
	assert.True(t, w.entry("a").Verdict.Healthy)

	t.Run("a result that arrives after the switch goes to the endpoint", func(t *testing.T) {
		p.Status.Endpoint.Incarnation = 2
		p.Status.Health, p.Status.NextHealth = p.Status.NextHealth, fleet.Health{}
		_, err := w.store.Store.WriteStatus(t.Context(), p, store.AllFields)
		require.NoError(t, err)
		w.at(at(7))
		require.NoError(t, w.sweeper.Sweep(t.Context(), Message{Tick: at(7), Proxies: []Target{{Name: "a", Incarnation: 2, Next: true}}}))
		p := w.get("a")
		assert.Equal(t, at(7), p.Status.Health.Tick)
		assert.Zero(t, p.Status.NextHealth)
	})
}

func TestAnInstanceWithoutAnAddressIsNotProbed(t *testing.T) {
	t.Parallel()
	private := fleet.Proxy{Spec: fleet.Spec{Mode: fleet.Managed}, Status: fleet.Status{
		Instance: &fleet.Instance{Incarnation: 1}, Next: &fleet.Instance{Incarnation: 2},
	}}
	for incarnation := range int64(4) {
		_, ok := find(private, incarnation)
		assert.False(t, ok, "incarnation %d", incarnation)
	}
	_, ok := find(fleet.Proxy{Spec: fleet.Spec{Mode: fleet.External, Endpoint: fleet.Endpoint{Host: "proxy.example"}}}, 0)
	assert.True(t, ok, "an External proxy is where its document says")
}

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

func TestTheExitAddressIsRecorded(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy(), func(_ *fleet.Proxy, spec map[string]any) {
		spec["healthCheck"].(map[string]any)["exitAddressFrom"] = "header"
	})
	require.NoError(t, w.sweep(0, "a"))
	assert.Equal(t, "192.0.2.7", w.get("a").Status.Health.ExitAddress)
}

func TestCredentialsReachTheProxyAndNothingElse(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.secrets["auth"] = "crawler:pl4nted-p:ss\n"
	w.secrets["odd"] = "pl4nted-without-a-colon"
	ask := func(secret string) func(*fleet.Proxy, map[string]any) {
		return func(_ *fleet.Proxy, spec map[string]any) {
			spec["endpoint"].(map[string]any)["credentialsSecretRef"] = map[string]any{"name": secret}
		}
	}
	b := w.proxy()
	seen := make(chan string, 1)
	b.be(func(c net.Conn) {
		var head recorder
		forward(head.tap(c))
		seen <- head.header().Get("Proxy-Authorization")
	})
	echo := w.proxy() // tells the credentials back wherever it can
	echo.be(func(c net.Conn) {
		auth := request(c).Header.Get("Proxy-Authorization")
		_, _ = fmt.Fprintf(c, "HTTP/1.1 502 %s\r\nX-Client-Address: %s\r\n\r\n%s", auth, auth, auth)
	})
	w.add("a", b, ask("auth"))
	w.add("echo", echo, ask("auth"))
	w.add("odd", w.proxy(), ask("odd"))
	w.add("absent", w.proxy(), ask("absent"))
	w.add("lost", w.proxy(), ask("unreachable"))
	w.add("lost-too", w.proxy(), ask("unreachable"))
	names := []string{"a", "echo", "odd", "absent", "lost", "lost-too"}
	require.NoError(t, w.sweep(0, names...))

	assert.Equal(t, "Basic Y3Jhd2xlcjpwbDRudGVkLXA6c3M=", <-seen)
	assert.True(t, w.get("a").Status.Health.Healthy)
	assert.Equal(t, fleet.OutcomeAuthFailed, w.get("odd").Status.Health.Outcome, "nobody could use such a secret")
	assert.Equal(t, fleet.OutcomeAuthFailed, w.get("absent").Status.Health.Outcome, "nor one that is not there")
	assert.Zero(t, w.get("lost").Status.Health, "an outage of the secrets says nothing about the proxy")
	assert.EqualValues(t, 2, w.count("probes", "inconclusive"))
	assert.Len(t, w.log.with("credentials cannot be resolved"), 1, "one line per secret and tick")
	everything := w.log.String()
	for _, n := range names {
		everything += fmt.Sprintf("%+v %+v", w.get(n), w.entry(n))
	}
	for _, planted := range []string{"pl4nted", "Y3Jhd2xlcjpwbDRudGVk"} {
		assert.False(t, strings.Contains(everything, planted), "%q in %s", planted, everything)
	}
}
