package gce

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
)

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

func TestAReplayedInsertReturnsTheInstance(t *testing.T) {
	t.Parallel()
	// The look across zones lags behind, so the insert itself has to tell.
	c := startCloud(t, emulator.Options{}, Settings{})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.Advance(10 * time.Second)
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
	c.Advance(2 * time.Minute)
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
	c.Advance(10 * time.Second)
	_, err = c.provider.Create(t.Context(), request("proxy-a"))
	require.Error(t, err)
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "nobody has it now: %v", err)
}
