package gce

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
)

func TestCreateReturnsBeforeTheInstanceBoots(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	got, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	assert.Equal(t, provider.StateProvisioning, got.State)
	assert.NotEmpty(t, got.Operation)
	got.Operation, got.CreateTime = "", time.Time{}
	assert.Equal(t, provider.Instance{
		Name: "proxy-a", Zone: zone, State: provider.StateProvisioning,
		Owner: owner, UID: "uid-of-proxy-a", Incarnation: 1, SpecHash: "abc123",
	}, got)

	c.Advance(boot)
	got, err = c.provider.Get(t.Context(), got.Ref())
	require.NoError(t, err)
	assert.Equal(t, provider.StateRunning, got.State)
	assert.NotEmpty(t, got.Address)
	assert.Equal(t, owner, got.Owner)
	assert.WithinDuration(t, c.Now().Add(-boot), got.CreateTime, time.Second)
}

func TestCreateTwiceAsksForOneInstance(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{0, 2 * time.Minute} {
		c := startCloud(t, emulator.Options{}, Settings{})
		first, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		c.Advance(later)
		again, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		assert.Equal(t, first.UID, again.UID)
		assert.Equal(t, []string{"proxy-a"}, c.Names())
	}
}

func TestCreatesAtOnceAskForOneInstance(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	var wg sync.WaitGroup
	for range 8 {
		p := c.open(t, Settings{})
		wg.Go(func() {
			got, err := p.Create(t.Context(), request("proxy-a"))
			if assert.NoError(t, err) {
				assert.Equal(t, "proxy-a", got.Name)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, []string{"proxy-a"}, c.Names())
}

func TestCreateFindsTheInstanceInAnotherZone(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	elsewhere := request("proxy-a")
	elsewhere.Zone = "us-east1-c"
	got, err := c.provider.Create(t.Context(), elsewhere)
	require.NoError(t, err)
	assert.Equal(t, zone, got.Zone)
	assert.Equal(t, []string{"proxy-a"}, c.Names())
}

func TestCreateMakesNothingWhileTheRegionIsNotSeenWhole(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	c.SetUnreachable("us-east1-c", true)
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
	require.ErrorIs(t, err, provider.ErrIncomplete)
	assert.Empty(t, c.Names())

	c.Heal()
	c.SetUnreachable("europe-west1-b", true)
	_, err = c.provider.Create(t.Context(), request("proxy-a"))
	assert.NoError(t, err, "another region's outage is none of this one's")
}

func TestALostAnswerIsRepairedByAskingAgain(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	c.Inject(emulator.Fault{Method: emulator.Insert, Times: 1, LoseAnswer: true})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.Error(t, err)
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
	got, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	assert.Equal(t, "uid-of-proxy-a", got.UID)
	assert.Equal(t, []string{"proxy-a"}, c.Names())
}

func TestAnAttemptAfterAFailedOneIsANewOne(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{5 * time.Second, 2 * time.Minute} {
		c := startCloud(t, emulator.Options{}, Settings{})
		c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}})
		first, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		c.Advance(later)
		_, err = c.provider.Get(t.Context(), first.Ref())
		require.NotNil(t, provider.LaunchFailure(err))
		second, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		assert.NotEqual(t, first.Operation, second.Operation)
		assert.Equal(t, []string{"proxy-a"}, c.Names(), "after %s", later)
	}
}

func TestAttemptsThatGoOnFailingSayWhy(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	c.Inject(emulator.Fault{Operation: &emulator.OperationError{Code: "ZONE_RESOURCE_POOL_EXHAUSTED", After: time.Nanosecond}})
	for range 3 {
		_, err := c.provider.Create(t.Context(), request("proxy-a"))
		c.Advance(time.Second)
		if err != nil {
			assert.Equal(t, provider.ErrQuotaExceeded, provider.ClassOf(err))
			out, ok := provider.StockOutZone(err)
			assert.True(t, ok)
			assert.Equal(t, zone, out)
		}
	}
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	assert.Equal(t, provider.ErrQuotaExceeded, provider.ClassOf(err), "a known id is not asked for ever again: %v", err)
	assert.LessOrEqual(t, c.count(emulator.Insert), 8)
}

func TestAnInstanceThatWentWithinTheMinuteIsMadeAnew(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{Provision: time.Millisecond, Boot: time.Millisecond, Stop: time.Millisecond}, Settings{})
	ref := request("proxy-a").Ref()
	for round := range 2 {
		_, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		c.Advance(time.Second)
		require.NoError(t, c.provider.Delete(t.Context(), ref))
		c.Advance(time.Second)
		require.Empty(t, c.Names(), "round %d", round)
	}
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "a third time within a minute has to wait: %v", err)
	c.Advance(time.Minute)
	_, err = c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	assert.Equal(t, []string{"proxy-a"}, c.Names())
}

func TestWhatCannotBeAskedForIsRefusedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		change func(*provider.CreateRequest)
		says   string
	}{
		"user data of more than 256 KiB": {func(r *provider.CreateRequest) { r.UserData = strings.Repeat("x", 256<<10+1) }, "262145 bytes"},
		"no zone":                        {func(r *provider.CreateRequest) { r.Zone = "" }, "a zone is needed"},
		"a path for a zone":              {func(r *provider.CreateRequest) { r.Zone = "../../x" }, "not a zone name"},
		"a zone of another region":       {func(r *provider.CreateRequest) { r.Region = "europe-west1" }, "not in region"},
		"a path for a name":              {func(r *provider.CreateRequest) { r.Name = "a/b" }, "not an instance name"},
		"a name of 64 characters":        {func(r *provider.CreateRequest) { r.Name = strings.Repeat("a", 64) }, "not an instance name"},
		"no machine type":                {func(r *provider.CreateRequest) { r.MachineType = "" }, "machine type"},
		"a path for a machine type":      {func(r *provider.CreateRequest) { r.MachineType = "a/b" }, "machine type"},
		"no owner":                       {func(r *provider.CreateRequest) { r.Owner = "" }, "an owner is needed"},
		"an owner that is no label":      {func(r *provider.CreateRequest) { r.Owner = "Not A Label" }, "owner"},
		"a uid that is no label":         {func(r *provider.CreateRequest) { r.UID = "UPPER" }, "uid"},
		"no incarnation":                 {func(r *provider.CreateRequest) { r.Incarnation = 0 }, "incarnation 0"},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			c := startCloud(t, emulator.Options{}, Settings{})
			req := request("proxy-a")
			row.change(&req)
			_, err := c.provider.Create(t.Context(), req)
			assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err))
			assert.ErrorContains(t, err, row.says)
			assert.Empty(t, c.Calls())
		})
	}
}

func TestUserDataOf256KiBIsTaken(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	req := request("proxy-a")
	req.UserData = strings.Repeat("x", 256<<10)
	_, err := c.provider.Create(t.Context(), req)
	assert.NoError(t, err)
}
