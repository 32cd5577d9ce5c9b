package gce

import (
	"context"
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

	c.advance(boot)
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
		c.advance(later)
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

func TestATakenNameIsAConflictAndNothingIsChanged(t *testing.T) {
	t.Parallel()
	rows := map[string]func(*provider.CreateRequest){
		"of another owner":       func(r *provider.CreateRequest) { r.Owner = "somebody-else" },
		"of another proxy":       func(r *provider.CreateRequest) { r.UID = "other" },
		"of another incarnation": func(r *provider.CreateRequest) { r.Incarnation = 2 },
		"of another spec":        func(r *provider.CreateRequest) { r.SpecHash = "other" },
	}
	for promise, change := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			for _, where := range []string{zone, "us-east1-c"} {
				c := startCloud(t, emulator.Options{}, Settings{})
				_, err := c.provider.Create(t.Context(), request("proxy-a"))
				require.NoError(t, err)
				req := request("proxy-a")
				req.Zone = where
				change(&req)
				_, err = c.provider.Create(t.Context(), req)
				assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err))
				var e *provider.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, provider.ReasonNameConflict, e.Reason)
				assert.Zero(t, c.count(emulator.Delete))
				got, err := c.provider.Get(t.Context(), provider.Ref{Name: "proxy-a", Zone: zone})
				require.NoError(t, err)
				assert.Equal(t, "uid-of-proxy-a", got.UID)
			}
		})
	}
}

func TestAnAnswerThatTheNameIsTakenIsLookedInto(t *testing.T) {
	t.Parallel()
	conflict := func(c *cloud, message string) error {
		c.Inject(emulator.Fault{Method: emulator.Insert, Times: 1, Status: 409, Reason: "alreadyExists", Message: message})
		_, err := c.provider.Create(t.Context(), request("proxy-a"))
		return err
	}
	c := startCloud(t, emulator.Options{}, Settings{})
	err := conflict(c, "The resource 'projects/p/zones/us-east1-b/instances/proxy-a' already exists")
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "it is gone meanwhile: %v", err)

	err = conflict(c, "The resource 'projects/p/zones/us-east1-b/disks/proxy-a' already exists")
	assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err), "a disk has the name: %v", err)

	c.Inject(emulator.Fault{Method: emulator.Get, Times: 1, Status: 503, Reason: "backendError"})
	err = conflict(c, "The resource 'projects/p/zones/us-east1-b/instances/proxy-a' already exists")
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
	assert.Contains(t, err.Error(), "backendError", "it could not be looked into")
}

func TestAnAttemptAfterAFailedOneIsANewOne(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{5 * time.Second, 2 * time.Minute} {
		c := startCloud(t, emulator.Options{}, Settings{})
		c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}})
		first, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		c.advance(later)
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
		c.advance(time.Second)
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
		c.advance(time.Second)
		require.NoError(t, c.provider.Delete(t.Context(), ref))
		c.advance(time.Second)
		require.Empty(t, c.Names(), "round %d", round)
	}
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "a third time within a minute has to wait: %v", err)
	c.advance(time.Minute)
	_, err = c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	assert.Equal(t, []string{"proxy-a"}, c.Names())
}

func TestAReplayedInsertReturnsTheInstance(t *testing.T) {
	t.Parallel()
	// The look across zones lags behind, so the insert itself has to tell.
	c := startCloud(t, emulator.Options{}, Settings{})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.advance(10 * time.Second)
	client, err := c.provider.connect(t.Context())
	require.NoError(t, err)
	got, err := c.provider.insert(t.Context(), client, request("proxy-a"), "")
	require.NoError(t, err)
	assert.Equal(t, provider.StateRunning, got.State)

	c.Inject(emulator.Fault{Method: emulator.Get, Times: 1, Status: 500, Reason: "internalError"})
	_, err = c.provider.insert(t.Context(), client, request("proxy-a"), "")
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
	assert.Contains(t, err.Error(), "internalError")
}

func TestANameThatTheLookMissedIsAConflictAllTheSame(t *testing.T) {
	t.Parallel()
	// Somebody made it between the look across zones and the insert.
	c := startCloud(t, emulator.Options{}, Settings{})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.advance(2 * time.Minute)
	client, err := c.provider.connect(t.Context())
	require.NoError(t, err)
	for _, change := range []func(*provider.CreateRequest){
		func(r *provider.CreateRequest) { r.Owner = "somebody-else" },
		func(r *provider.CreateRequest) { r.SpecHash = "other" },
	} {
		req := request("proxy-a")
		change(&req)
		_, err = c.provider.insert(t.Context(), client, req, "")
		var e *provider.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err))
		assert.Equal(t, provider.ReasonNameConflict, e.Reason)
	}
	got, err := c.provider.insert(t.Context(), client, request("proxy-a"), "")
	require.NoError(t, err, "and is adopted when it is the one that was asked for")
	assert.Equal(t, "uid-of-proxy-a", got.UID)
}

func TestAnInsertThatFindsTheNameTakenLaterIsLookedInto(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: "RESOURCE_ALREADY_EXISTS"}})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.advance(10 * time.Second)
	_, err = c.provider.Create(t.Context(), request("proxy-a"))
	require.Error(t, err)
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "nobody has it now: %v", err)
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

func TestAnEndedContextPassesUnchanged(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.provider.Create(ended, request("proxy-a"))
	assert.Equal(t, context.Canceled, err)
	_, err = c.provider.Get(ended, request("proxy-a").Ref())
	assert.Equal(t, context.Canceled, err)
	assert.Equal(t, context.Canceled, c.provider.Delete(ended, request("proxy-a").Ref()))
	_, err = c.provider.ListByTag(ended, owner)
	assert.Equal(t, context.Canceled, err)
	assert.Empty(t, c.Calls())
}

func TestADeadlineEndsEveryCallUnderWay(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *Provider) error{
		"create": func(ctx context.Context, p *Provider) error { _, err := p.Create(ctx, request("proxy-a")); return err },
		"get": func(ctx context.Context, p *Provider) error {
			_, err := p.Get(ctx, request("proxy-a").Ref())
			return err
		},
		"delete": func(ctx context.Context, p *Provider) error { return p.Delete(ctx, request("proxy-a").Ref()) },
		"list":   func(ctx context.Context, p *Provider) error { _, err := p.ListByTag(ctx, owner); return err },
		"get by operation": func(ctx context.Context, p *Provider) error {
			_, err := p.Get(ctx, provider.Ref{Name: "proxy-a", Zone: zone, Operation: zone + "/operation-1"})
			return err
		},
	}
	slow := map[string]emulator.Method{
		"create": emulator.Insert, "get": emulator.Get, "delete": emulator.Get, "list": emulator.AggregatedList,
		"get by operation": emulator.GetOperation,
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCloud(t, emulator.Options{}, Settings{})
			c.Inject(emulator.Fault{Method: slow[name], Delay: time.Hour})
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			begun := time.Now()
			err := call(ctx, c.provider)
			assert.Equal(t, context.DeadlineExceeded, err)
			assert.Less(t, time.Since(begun), 5*time.Second)
		})
	}
}

func TestASlowCloudIsTransient(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{RequestTimeout: time.Second})
	c.Inject(emulator.Fault{Delay: time.Hour})
	for name, call := range map[string]func() error{
		"get":  func() error { _, err := c.provider.Get(t.Context(), request("proxy-a").Ref()); return err },
		"list": func() error { _, err := c.provider.ListByTag(t.Context(), owner); return err },
	} {
		err := call()
		require.Error(t, err, name)
		assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), name)
		assert.NotErrorIs(t, err, context.DeadlineExceeded, "%s: the caller's own deadline has not passed", name)
	}
}
