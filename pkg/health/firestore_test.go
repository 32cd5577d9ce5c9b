package health

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// TestOnFirestoreSweepsCountOnceAndRestWithoutWrites plays the life of a verdict on the real emulator:
// what is compared with stored values must come back from the store as it went in.
func TestOnFirestoreSweepsCountOnceAndRestWithoutWrites(t *testing.T) {
	if os.Getenv("FIRESTORE_EMULATOR_HOST") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("FIRESTORE_EMULATOR_HOST must be set where CI is: run make test")
		}
		t.Skip("SKIPPED: no Firestore emulator; run make test, or set FIRESTORE_EMULATOR_HOST")
	}
	t.Parallel()
	s, err := firestore.Open(t.Context(), fmt.Sprintf("test-%d", rand.Int64()), "(default)")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	w := newWorldOn(t, s)
	good, bad := w.proxy(), w.proxy()
	bad.be(broken)
	w.add("good", good)
	w.add("bad", bad)
	sweep := func(minute int) error {
		w.at(at(minute).Add(123456789)) // a clock is finer than the store
		m := Message{Tick: canonical(at(minute).Add(987654321)), Proxies: []Target{{Name: "good"}, {Name: "bad"}}}
		return w.sweeper.Sweep(t.Context(), m)
	}

	outage := errors.New("outage")
	w.store.on(func(f *flaky) { f.failVerdict = outage })
	require.ErrorIs(t, sweep(0), outage)
	require.NoError(t, sweep(0), "delivered again")
	assert.EqualValues(t, 1, good.asked.Load(), "what has been counted is not probed again")
	assert.Equal(t, fleet.VerdictOf(w.get("good")), w.entry("good").Verdict)
	assert.True(t, w.entry("good").Verdict.Healthy)
	ready, _ := w.get("good").Status.Conditions.Get(fleet.ConditionReady)
	assert.True(t, ready.Status, ready.Message)

	require.NoError(t, sweep(1))
	require.NoError(t, sweep(2))
	assert.Equal(t, at(2).Add(123456*time.Microsecond), w.get("bad").Status.Health.UnhealthySince)
	writes, verdicts := w.store.writes.Load(), w.store.verdicts.Load()
	require.NoError(t, sweep(3))
	require.NoError(t, sweep(4))
	assert.Equal(t, writes, w.store.writes.Load(), "a fleet at rest writes nothing")
	assert.Equal(t, verdicts, w.store.verdicts.Load())
	require.NoError(t, sweep(5))
	assert.Equal(t, writes+1, w.store.writes.Load(), "but for heartbeats")
	assert.EqualValues(t, 3, w.get("bad").Status.Health.ConsecutiveFailures)
}
