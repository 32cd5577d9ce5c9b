package mock

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

func TestInjectedFailuresHitTheirVerbInOrderAndHaveNoEffect(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	kept := create(t, c, request("kept", 1))
	c.InjectCreateFailures(2, provider.ErrQuotaExceeded)
	c.InjectCreateFailures(1, provider.ErrPermanent)
	c.InjectFailures(VerbGet, 1, provider.ErrPermanent)
	c.InjectFailures(VerbDelete, 1, provider.ErrTransient)
	c.InjectFailures(VerbList, 1, provider.ErrQuotaExceeded)

	for _, class := range []error{provider.ErrQuotaExceeded, provider.ErrQuotaExceeded, provider.ErrPermanent} {
		_, err := c.Create(t.Context(), request("new", 1))
		require.Error(t, err)
		assert.Equal(t, class, provider.ClassOf(err))
	}
	_, err := c.Get(t.Context(), kept.Ref())
	assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err))
	require.ErrorContains(t, err, "get "+kept.Name+" in us-east1-b: permanent (FORBIDDEN)")
	require.ErrorIs(t, c.Delete(t.Context(), kept.Ref()), provider.ErrTransient)
	_, err = c.ListByTag(t.Context(), "ours")
	require.ErrorIs(t, err, provider.ErrQuotaExceeded)

	assert.Equal(t, []string{kept.Name}, list(t, c), "the failed calls had no effect, and the next ones work")
	assert.Equal(t, Calls{Create: 4, Get: 1, Delete: 1, List: 2, ListPages: 1}, c.Calls())
	assert.Equal(t, 8, c.Calls().Total())
	assert.Equal(t, 1, c.Made())
}

func TestLostRepliesTakeEffect(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	for _, v := range []Verb{VerbCreate, VerbGet, VerbDelete, VerbList} {
		c.InjectLostReplies(v, 1)
	}
	req := request("a", 1)
	_, err := c.Create(t.Context(), req)
	require.ErrorIs(t, err, provider.ErrTransient)
	assert.Len(t, c.Instances(), 1)
	_, err = c.Get(t.Context(), req.Ref())
	require.ErrorIs(t, err, provider.ErrTransient)
	_, err = c.ListByTag(t.Context(), "ours")
	require.ErrorIs(t, err, provider.ErrTransient)
	require.NotErrorIs(t, err, provider.ErrIncomplete)
	require.ErrorIs(t, c.Delete(t.Context(), req.Ref()), provider.ErrTransient)
	assert.Empty(t, c.Instances())
	require.NoError(t, c.Delete(t.Context(), req.Ref()))
}

func TestSettingsInjectFaultsToo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cause    string
		class    error
		stockOut bool
	}{{"", provider.ErrTransient, false}, {"transient", provider.ErrTransient, false}, {"quota", provider.ErrQuotaExceeded, false}, {"stockOut", provider.ErrQuotaExceeded, true}, {"permanent", provider.ErrPermanent, false}} {
		t.Run("failWith "+row.cause, func(t *testing.T) {
			t.Parallel()
			c, _ := opened(t, Settings{FailNextCreates: 2, FailWith: row.cause, LoseResponses: 1})
			for range 2 {
				_, err := c.Create(t.Context(), request("a", 1))
				assert.Equal(t, row.class, provider.ClassOf(err))
				zone, stockOut := provider.StockOutZone(err)
				assert.Equal(t, row.stockOut, stockOut)
				if stockOut {
					assert.Equal(t, "us-east1-b", zone)
				}
				assert.Empty(t, c.Instances())
			}
			_, err := c.Create(t.Context(), request("a", 1))
			require.ErrorIs(t, err, provider.ErrTransient)
			assert.Len(t, c.Instances(), 1, "made, and the reply lost")
			create(t, c, request("a", 1))
		})
	}
}

func TestFailedLaunchIsToldToWhoHasTheOperation(t *testing.T) {
	t.Parallel()
	c, clock := opened(t, Settings{ProvisionDelay: time.Second})
	c.InjectLaunchFailures(1, provider.Error{Class: provider.ErrQuotaExceeded, Reason: reasonStockOut, StockOut: true})
	req := request("a", 1)
	created := create(t, c, req)
	assert.Equal(t, provider.StateProvisioning, created.State)
	assert.NotEmpty(t, created.Operation)
	assert.Equal(t, created, create(t, c, req), "asked again, the pending one is returned")
	clock.Advance(time.Second)
	assert.Empty(t, list(t, c))
	_, err := c.Get(t.Context(), created.Ref())
	failure := provider.LaunchFailure(err)
	require.NotNil(t, failure)
	zone, ok := provider.StockOutZone(failure)
	assert.True(t, ok)
	assert.Equal(t, req.Zone, zone)

	_, err = c.Get(t.Context(), req.Ref())
	require.ErrorIs(t, err, provider.ErrNotFound)
	assert.Nil(t, provider.LaunchFailure(err), "who lost the operation learns nothing")
	_, err = c.Get(t.Context(), provider.Ref{Name: "proxy-other", Operation: created.Operation})
	assert.Nil(t, provider.LaunchFailure(err), "an operation is about one instance")

	again := create(t, c, req)
	assert.NotEqual(t, created.Operation, again.Operation)
	clock.Advance(time.Second)
	running := get(t, c, again.Ref())
	assert.Equal(t, provider.StateRunning, running.State)
	assert.Empty(t, running.Operation, "nothing is pending")
}

func TestALaunchThatFailsAtOnceIsAcceptedAllTheSame(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	c.InjectLaunchFailures(1, provider.Error{Class: provider.ErrPermanent})
	created := create(t, c, request("a", 1))
	assert.Equal(t, provider.StateProvisioning, created.State)
	_, err := c.Get(t.Context(), created.Ref())
	assert.NotNil(t, provider.LaunchFailure(err))
	assert.Equal(t, 1, c.Made())
}

func TestWhatWasDeletedDidNotFail(t *testing.T) {
	t.Parallel()
	c, clock := opened(t, Settings{ProvisionDelay: time.Minute})
	c.InjectLaunchFailures(1, provider.Error{Class: provider.ErrQuotaExceeded})
	created := create(t, c, request("a", 1))
	require.NoError(t, c.Delete(t.Context(), created.Ref()))
	clock.Advance(time.Minute)
	_, err := c.Get(t.Context(), created.Ref())
	require.ErrorIs(t, err, provider.ErrNotFound)
	assert.Nil(t, provider.LaunchFailure(err))
}

func TestOutagesEndTogether(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	first, second := c.Outage(), c.Outage()
	first()
	first()
	_, err := c.ListByTag(t.Context(), "ours")
	require.ErrorIs(t, err, provider.ErrTransient)
	second()
	assert.Empty(t, list(t, c))
}

func TestStalledCallsGoOnWhenItEnds(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	first := c.Stall()
	second := c.Stall()
	done := make(chan error, 1)
	go func() {
		_, err := c.Create(context.Background(), request("a", 1))
		done <- err
	}()
	require.Eventually(t, func() bool { return c.Calls().Create == 1 }, 10*time.Second, time.Millisecond)
	first()
	select {
	case <-done:
		t.Fatal("the second stall is still on")
	default:
	}
	second()
	require.NoError(t, <-done)
	assert.Len(t, list(t, c), 1)
}

func TestInstancesFromOutside(t *testing.T) {
	t.Parallel()
	c, clock := opened(t, Settings{ProvisionDelay: time.Second})
	old := clock.Now().Add(-time.Hour)
	require.True(t, c.Place(provider.Instance{Name: "orphan", Owner: "ours", UID: "lost", Incarnation: 3, Zone: "z", CreateTime: old}))
	require.True(t, c.Place(provider.Instance{Name: "unlabelled"}))
	require.False(t, c.Place(provider.Instance{Name: "orphan"}), "the name is taken")
	seen, err := c.ListByTag(t.Context(), "ours")
	require.NoError(t, err)
	require.Len(t, seen, 1)
	assert.Equal(t, provider.StateRunning, seen[0].State)
	assert.Equal(t, old, seen[0].CreateTime)
	nobody, err := c.ListByTag(t.Context(), "")
	require.NoError(t, err)
	assert.Empty(t, nobody, "no tag is nobody's")
	assert.Equal(t, []string{"orphan", "unlabelled"}, names(c.Instances()), "the truth has all")

	assert.True(t, c.Preempt("orphan"))
	assert.Equal(t, provider.StateTerminated, get(t, c, provider.Ref{Name: "orphan"}).State)
	assert.True(t, c.Vanish("orphan"))
	assert.False(t, c.Vanish("orphan"))
	assert.False(t, c.Preempt("orphan"))
	require.NoError(t, c.Delete(t.Context(), provider.Ref{Name: "orphan"}))
	assert.Equal(t, []string{"unlabelled"}, names(c.Instances()))
}

func TestTheTruthCountsAsNoCall(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	c.InjectFailures(VerbList, 1, provider.ErrTransient)
	c.Instances()
	assert.Zero(t, c.Calls())
	_, err := c.ListByTag(t.Context(), "ours")
	require.Error(t, err, "and uses up no fault")
}
