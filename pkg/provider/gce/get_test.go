package gce

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
)

func TestGetFindsAnInstanceWhateverTheHint(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	for _, hint := range []string{zone, "", "us-east1-c", "europe-west1-b", "not a zone"} {
		got, err := c.provider.Get(t.Context(), provider.Ref{Name: "proxy-a", Zone: hint})
		require.NoError(t, err, hint)
		assert.Equal(t, zone, got.Zone, hint)
	}
}

func TestGetWithoutAHintCallsNothingAbsentOnAnIncompleteView(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	c.SetUnreachable("asia-east1-a", true)
	_, err := c.provider.Get(t.Context(), provider.Ref{Name: "proxy-a"})
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
	assert.NotErrorIs(t, err, provider.ErrNotFound)

	_, err = c.provider.Get(t.Context(), provider.Ref{Name: "proxy-a", Zone: zone})
	assert.ErrorIs(t, err, provider.ErrNotFound, "the zone that it was asked for in has answered")

	c.SetUnreachable(zone, true)
	_, err = c.provider.Get(t.Context(), provider.Ref{Name: "proxy-a", Zone: zone})
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
}

func TestGetOfAnImpossibleNameIsNotFoundWithoutACall(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	for _, name := range []string{"", "a/b", "UPPER", ".."} {
		_, err := c.provider.Get(t.Context(), provider.Ref{Name: name, Zone: zone})
		assert.ErrorIs(t, err, provider.ErrNotFound, name)
	}
	assert.Empty(t, c.Calls())
}

func TestAFailedLaunchIsFoundThroughItsOperation(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		refOf func(provider.Instance) provider.Ref
	}{
		"by the name that Create returned":        {func(i provider.Instance) provider.Ref { return i.Ref() }},
		"by its target, when the answer was lost": {func(i provider.Instance) provider.Ref { return provider.Ref{Name: i.Name, Zone: i.Zone} }},
		"by its name alone, in another zone's hint": {func(i provider.Instance) provider.Ref {
			return provider.Ref{Name: i.Name, Zone: "us-east1-c", Operation: i.Operation}
		}},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			c := startCloud(t, emulator.Options{}, Settings{})
			c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: "IP_SPACE_EXHAUSTED"}})
			made, err := c.provider.Create(t.Context(), request("proxy-a"))
			require.NoError(t, err)
			c.Advance(boot)
			_, err = c.provider.Get(t.Context(), row.refOf(made))
			require.ErrorIs(t, err, provider.ErrNotFound)
			failure := provider.LaunchFailure(err)
			require.NotNil(t, failure)
			assert.Equal(t, "IP_SPACE_EXHAUSTED", failure.Reason)
			assert.Equal(t, provider.ErrQuotaExceeded, provider.ClassOf(failure))
		})
	}
}

func TestTheLastOfSeveralFailedLaunchesCounts(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{PageSize: 1}, Settings{})
	for _, code := range []string{"INTERNAL_ERROR", "QUOTA_EXCEEDED", "ZONE_RESOURCE_POOL_EXHAUSTED"} {
		c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: code}})
		_, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		c.Advance(2 * time.Minute)
	}
	_, err := c.provider.Get(t.Context(), request("proxy-a").Ref())
	failure := provider.LaunchFailure(err)
	require.NotNil(t, failure)
	assert.Equal(t, "ZONE_RESOURCE_POOL_EXHAUSTED", failure.Reason)
}

func TestALaunchUnderWayIsNotAbsent(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: "QUOTA_EXCEEDED", After: time.Hour}})
	made, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.Advance(time.Second)
	_, err = c.provider.Get(t.Context(), made.Ref())
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "the API has accepted it and shows no instance yet: %v", err)
	assert.NotErrorIs(t, err, provider.ErrNotFound)

	err = c.provider.Delete(t.Context(), made.Ref())
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), "it may yet appear: %v", err)
	c.Advance(2 * time.Hour)
	assert.NoError(t, c.provider.Delete(t.Context(), made.Ref()))
}

func TestAForgottenOperationLeavesTheInstanceAbsent(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	c.Inject(emulator.Fault{Times: 1, Operation: &emulator.OperationError{Code: "QUOTA_EXCEEDED"}})
	made, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.Advance(boot)
	c.ForgetOperations()
	_, err = c.provider.Get(t.Context(), made.Ref())
	require.ErrorIs(t, err, provider.ErrNotFound)
	assert.Nil(t, provider.LaunchFailure(err))
	assert.NoError(t, c.provider.Delete(t.Context(), made.Ref()))
}

func TestAnInstanceThatRanAndWentIsNoFailedLaunch(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	made, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.Advance(boot)
	require.NoError(t, c.provider.Delete(t.Context(), made.Ref()))
	c.Advance(boot)
	_, err = c.provider.Get(t.Context(), made.Ref())
	require.ErrorIs(t, err, provider.ErrNotFound)
	assert.Nil(t, provider.LaunchFailure(err))
}

func TestAnOutageIsNeverNotFound(t *testing.T) {
	t.Parallel()
	for _, m := range []emulator.Method{emulator.Get, emulator.AggregatedList, emulator.ListOperations, emulator.GetOperation} {
		c := startCloud(t, emulator.Options{}, Settings{})
		c.Inject(emulator.Fault{Method: m, Status: 503, Reason: "backendError"})
		ref := provider.Ref{Name: "proxy-a", Zone: zone}
		if m == emulator.GetOperation {
			ref.Operation = zone + "/operation-1"
		}
		_, err := c.provider.Get(t.Context(), ref)
		require.Error(t, err, m)
		assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), m)
		assert.NotErrorIs(t, err, provider.ErrNotFound, m)
		if m == emulator.Get || m == emulator.GetOperation {
			assert.Equal(t, 1, c.count(m), "%s: when to try again is for the caller to say", m)
		}
	}
}

func TestStatesAreMappedOnce(t *testing.T) {
	t.Parallel()
	rows := map[string]provider.State{
		"PENDING": provider.StateProvisioning, "PROVISIONING": provider.StateProvisioning, "STAGING": provider.StateProvisioning,
		"RUNNING": provider.StateRunning, "REPAIRING": provider.StateRunning,
		"STOPPING": provider.StateStopping, "PENDING_STOP": provider.StateStopping,
		"DEPROVISIONING": provider.StateStopping, "SUSPENDING": provider.StateStopping,
		"STOPPED": provider.StateTerminated, "TERMINATED": provider.StateTerminated, "SUSPENDED": provider.StateTerminated,
		"": provider.StateUnknown, "LEVITATING": provider.StateUnknown,
	}
	for status, want := range rows {
		assert.Equal(t, want, stateOf(status), status)
	}
}
