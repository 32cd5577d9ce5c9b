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
