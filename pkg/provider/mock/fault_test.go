package mock

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

func TestAListingLagsBehind(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{ListLag: 2})
	a, b := request("a", 1), request("b", 1)
	create(t, c, a)
	assert.Empty(t, list(t, c), "sees what was two listings ago: nothing")
	create(t, c, b)
	assert.Empty(t, list(t, c))
	assert.Equal(t, []string{a.Name}, list(t, c))
	require.NoError(t, c.Delete(t.Context(), a.Ref()))
	assert.Equal(t, []string{a.Name, b.Name}, list(t, c))
	assert.Equal(t, []string{a.Name, b.Name}, list(t, c), "a deleted one is seen a while longer")
	assert.Equal(t, []string{b.Name}, list(t, c))
	_, err := c.Get(t.Context(), a.Ref())
	require.ErrorIs(t, err, provider.ErrNotFound, "get does not lag")
	create(t, c, a)
	c.SetListLag(0)
	assert.Equal(t, []string{b.Name, a.Name}, list(t, c))
	c.SetListLag(1)
	assert.Empty(t, list(t, c), "what was before the lag is forgotten")
}

func TestRoomHasLimits(t *testing.T) {
	t.Parallel()
	create := func(t *testing.T, c *Cloud, uid, zone string) error {
		req := request(uid, 1)
		req.Zone = zone
		_, err := c.Create(t.Context(), req)
		return err
	}
	t.Run("stock-out is by zone", func(t *testing.T) {
		t.Parallel()
		c, _ := opened(t, Settings{StockOut: []string{"z-a"}})
		require.NoError(t, create(t, c, "b", "z-b"))
		zone, ok := provider.StockOutZone(create(t, c, "a", "z-a"))
		assert.True(t, ok)
		assert.Equal(t, "z-a", zone)
		c.SetStockOut("z-b")
		require.NoError(t, create(t, c, "a", "z-a"))
		require.NoError(t, create(t, c, "b", "z-b"), "what is there needs no room")
		require.ErrorIs(t, create(t, c, "c", "z-b"), provider.ErrQuotaExceeded)
		c.SetStockOut()
		require.NoError(t, create(t, c, "c", "z-b"))
	})
	t.Run("capacity counts all owners and what is on its way out", func(t *testing.T) {
		t.Parallel()
		c, clock := opened(t, Settings{Capacity: 2, StopDelay: time.Second})
		require.True(t, c.Place(provider.Instance{Name: "theirs", Owner: "theirs"}))
		require.NoError(t, create(t, c, "a", "z"))
		err := create(t, c, "b", "z")
		require.ErrorIs(t, err, provider.ErrQuotaExceeded)
		_, stockOut := provider.StockOutZone(err)
		assert.False(t, stockOut)
		require.NoError(t, c.Delete(t.Context(), request("a", 1).Ref()))
		require.ErrorIs(t, create(t, c, "b", "z"), provider.ErrQuotaExceeded)
		clock.Advance(time.Second)
		require.NoError(t, create(t, c, "b", "z"))
		c.SetCapacity(0)
		require.NoError(t, create(t, c, "c", "z"))
	})
	t.Run("creates are limited in a window", func(t *testing.T) {
		t.Parallel()
		c, clock := opened(t, Settings{CreateLimit: 10})
		for i := range 10 {
			require.NoError(t, create(t, c, fmt.Sprint("a", i), "z"))
			clock.Advance(time.Second)
		}
		require.NoError(t, create(t, c, "a1", "z"), "what is there counts nothing")
		err := create(t, c, "b", "z")
		var e *provider.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
		assert.Equal(t, 50*time.Second, e.RetryAfter)
		clock.Advance(50 * time.Second)
		require.NoError(t, create(t, c, "b", "z"))
		require.Error(t, create(t, c, "c", "z"))
		c.SetCreateLimit(0, 0)
		require.NoError(t, create(t, c, "c", "z"))
	})
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

func TestHiddenZonesAreNamed(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	here, there := request("here", 1), request("there", 1)
	there.Zone = "us-west1-a"
	create(t, c, here)
	create(t, c, there)
	c.HideZones("us-west1-a", "us-west1-b")
	seen, err := c.ListByTag(t.Context(), "ours")
	var incomplete *provider.IncompleteError
	require.ErrorAs(t, err, &incomplete)
	assert.Equal(t, []string{"us-west1-a", "us-west1-b"}, incomplete.Unreachable)
	assert.Equal(t, []string{here.Name}, names(seen))
	assert.Equal(t, there.Name, get(t, c, there.Ref()).Name)
	c.HideZones()
	assert.Len(t, list(t, c), 2)
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

func TestListPagesAreThoseOfARealCloud(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	for _, row := range []struct{ instances, pages int }{{0, 1}, {1, 1}, {500, 1}, {501, 2}} {
		for len(c.Instances()) < row.instances {
			create(t, c, request(fmt.Sprint(c.Made()), 1))
		}
		before := c.Calls().ListPages
		list(t, c)
		assert.Equal(t, row.pages, c.Calls().ListPages-before, "%d instances", row.instances)
	}
}

func TestRequestsThatARealCloudRefusesAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		promise string
		change  func(*provider.CreateRequest)
		want    string
	}{
		{"name", func(r *provider.CreateRequest) { r.Name = "Proxy" }, `name "Proxy"`},
		{"no owner", func(r *provider.CreateRequest) { r.Owner = "" }, "an owner is needed"},
		{"owner", func(r *provider.CreateRequest) { r.Owner = "a/b" }, `owner "a/b"`},
		{"uid", func(r *provider.CreateRequest) { r.UID = strings.Repeat("a", 64) }, "uid"},
		{"spec hash", func(r *provider.CreateRequest) { r.SpecHash = "A" }, `spec hash "A"`},
		{"proxy name", func(r *provider.CreateRequest) { r.ProxyName = "a b" }, `proxy name "a b"`},
		{"incarnation", func(r *provider.CreateRequest) { r.Incarnation = 0 }, "incarnation 0: must be 1 or more"},
		{"port 0", func(r *provider.CreateRequest) { r.Port = 0 }, "port 0: must be between 1 and 65535"},
		{"port 65536", func(r *provider.CreateRequest) { r.Port = 65536 }, "port 65536: must be between 1 and 65535"},
		{"user data", func(r *provider.CreateRequest) { r.UserData = strings.Repeat("a", 262145) }, "user data has 262145 bytes, at most 262144"},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			c, _ := opened(t, Settings{})
			req := request("a", 1)
			row.change(&req)
			_, err := c.Create(t.Context(), req)
			require.ErrorContains(t, err, row.want)
			assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err))
			assert.Empty(t, c.Instances())
		})
	}
	c, _ := opened(t, Settings{})
	_, err := c.Create(t.Context(), provider.CreateRequest{})
	require.ErrorContains(t, err, "an owner is needed")
	require.ErrorContains(t, err, "port 0")
	var e *provider.Error
	assert.True(t, errors.As(err, &e))
}

func TestTwoControlPlanesShareACloud(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	theirs := request("a", 1)
	theirs.Owner = "theirs"
	create(t, c, theirs)
	_, err := c.Create(t.Context(), request("a", 1))
	assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err))
	require.ErrorContains(t, err, provider.ReasonNameConflict)
	assert.Empty(t, list(t, c))
	assert.Equal(t, "theirs", get(t, c, theirs.Ref()).Owner)
}

func BenchmarkListTenThousand(b *testing.B) {
	c, err := Open(Settings{}, WithoutListener())
	require.NoError(b, err)
	for i := range 10_000 {
		_, err := c.Create(b.Context(), request(fmt.Sprint(i), 1))
		require.NoError(b, err)
	}
	for b.Loop() {
		if got, err := c.ListByTag(b.Context(), "ours"); err != nil || len(got) != 10_000 {
			b.Fatal(len(got), err)
		}
	}
}
