package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/secret"
	"crawl.example.com/proxyfleet/pkg/store"
)

// secrets resolves what is in it.
type secrets map[string]string

func (s secrets) Resolve(_ context.Context, name, key string) (string, error) {
	if v, ok := s[name+"/"+key]; ok {
		return v, nil
	}
	return "", fmt.Errorf("secret %s: %w", name, secret.ErrNotFound)
}

// requests is a cloud that remembers what it was asked to create.
type requests struct {
	provider.Provider
	mu  sync.Mutex
	all []provider.CreateRequest
}

func (r *requests) Create(ctx context.Context, req provider.CreateRequest) (provider.Instance, error) {
	r.mu.Lock()
	r.all = append(r.all, req)
	r.mu.Unlock()
	return r.Provider.Create(ctx, req)
}

func TestCloudInitComesFromTheSpecOrItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cloud := &requests{Provider: w.main}
	w.rec.Providers["main"] = Account{Provider: cloud}
	ref := map[string]any{"secretRef": map[string]any{"name": "init", "key": "user-data"}}
	w.put("inline", map[string]any{"cloudInit": map[string]any{"inline": "#cloud-config\n"}})
	w.put("secret", map[string]any{"cloudInit": ref})
	w.run()
	require.Len(t, cloud.all, 1)
	assert.Equal(t, "#cloud-config\n", cloud.all[0].UserData)
	assert.Equal(t, "SecretUnavailable", w.get("secret").Status.Retry.Reason)
	assert.Contains(t, w.condition("secret", fleet.ConditionProvisioned).Message, "no secrets are configured")

	w.rec.Secrets = secrets{}
	w.tick(1)
	assert.Contains(t, w.condition("secret", fleet.ConditionProvisioned).Message, "secret not found")
	assert.Equal(t, "Transient", w.get("secret").Status.Retry.Class, "it may be written after the spec")

	w.rec.Secrets = secrets{"init/user-data": "#cloud-config\npassword: planted"}
	w.tick(2)
	require.Len(t, cloud.all, 2)
	assert.Equal(t, "#cloud-config\npassword: planted", cloud.all[1].UserData)
	w.tick(1)
	assert.NotContains(t, fmt.Sprintf("%+v %+v", w.get("secret").Status, w.last), "planted")
}

func TestADocumentThatIsMadeAnewMeanwhileIsLeftToTheNextRun(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", nil)
	before := w.get("a").CreateTime
	once := true
	f.before["WriteStatus"] = func() {
		if once {
			once = false
			w.store.Remove("a")
			w.put("a", nil)
		}
	}
	s := w.run()
	assert.Empty(t, s.Errors)
	assert.Zero(t, w.main.Made())
	w.tick(2)
	p := w.get("a")
	assert.NotEqual(t, before, p.CreateTime)
	assert.Equal(t, fleet.UID(testDatabase, "proxies/a", p.CreateTime), p.Status.UID)
	assert.Equal(t, 1, w.main.Made())
}

func TestARereadThatFailsIsCounted(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", nil)
	f.before["WriteStatus"] = func() { w.edit("a", map[string]any{"maxLeases": 3}) }
	f.fail["GetProxy"] = errOutage
	s := w.run()
	assert.Equal(t, 1, s.Errors[errorStore])
	assert.Zero(t, w.main.Made())
}

func TestSlotsAreScannedInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slot := func(proxy string, n int) {
		_, err := w.store.CreateSlot(t.Context(), store.Slot{Proxy: proxy, N: n, LeaseID: "x", ExpireTime: start.Add(time.Hour)}, nil)
		require.NoError(t, err)
	}
	want := map[string][]store.Slot{}
	for i := range 25 {
		name := fmt.Sprintf("p%02d", i)
		want[name] = nil
		for n := range 200 {
			slot(name, n)
		}
	}
	for n := range 300 {
		slot("somebody-elses", n)
	}
	r := run{Reconciler: w.rec}
	got, err := r.scanSlots(t.Context(), want)
	require.NoError(t, err)
	for name, slots := range got {
		assert.Len(t, slots, 200, name)
	}
	for n := range slotsPage + 1 {
		slot("endless", n)
	}
	_, err = r.scanSlots(t.Context(), map[string][]store.Slot{"p00": nil})
	require.ErrorContains(t, err, "endless has more than there can be")
}

func TestASlotThatCannotBeFreedKeepsTheDocument(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", map[string]any{"lifecycle": map[string]any{"drainTimeout": "0s"}})
	w.up()
	w.lease("a", 0, time.Hour)
	f.fail["DeleteSlot"] = store.ErrConflict
	w.askDelete("a")
	w.tick(4)
	assert.True(t, w.exists("a"))
	assert.Empty(t, w.main.Instances())
	assert.Equal(t, 1, w.last.Errors[errorStore])
	delete(f.fail, "DeleteSlot")
	w.tick(1)
	assert.False(t, w.exists("a"))
}

func TestACatalogThatCannotBeWrittenIsReportedAndMadeUpForLater(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t)
	w.put("a", nil)
	f.fail["WriteShard"] = errOutage
	s := w.run()
	assert.Equal(t, 1, s.Errors[errorCatalog])
	assert.Equal(t, 1, w.main.Made(), "the instances do not wait for it")
	f.fail["WriteShard"] = store.ErrConflict
	s = w.run()
	assert.Equal(t, 1, s.Errors[errorCatalog])
	assert.Contains(t, s.Failures[0].Message, "6 times")
	delete(f.fail, "WriteShard")
	w.tick(2)
	assert.True(t, w.entry("a").Ready())
}

func TestAnUnhealthySuccessorOfALostInstanceProvesItself(t *testing.T) {
	t.Parallel()
	d := Plan(viewOf(serving(1), successor(2, runningState), listed(2, runningState), gone(1), func(v *View) {
		v.Listed = v.Listed[1:]
		v.Proxy.Status.NextHealth = fleet.Health{Incarnation: 2, Outcome: fleet.OutcomeRefused}
	}))
	assert.EqualValues(t, 2, d.Status.Endpoint.Incarnation)
	assert.Equal(t, fleet.OutcomeRefused, d.Status.Health.Outcome)
	assert.False(t, condition(t, d, fleet.ConditionHealthy).Status)
}

func TestASpecWithoutZonesLeavesTheChoiceToTheProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cloud := &requests{Provider: w.main}
	w.rec.Providers["main"] = Account{Provider: cloud}
	w.put("a", map[string]any{"placement": nil})
	w.run()
	require.Len(t, cloud.all, 1)
	assert.Empty(t, cloud.all[0].Zone)
	assert.Empty(t, cloud.all[0].Region)
}
