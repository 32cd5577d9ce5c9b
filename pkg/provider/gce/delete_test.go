package gce

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
)

func TestDeleteOfNothingIsSuccess(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	for _, ref := range []provider.Ref{
		{Name: "proxy-a", Zone: zone},
		{Name: "proxy-a"},
		{Name: "proxy-a", Zone: zone, Operation: "odd"},
		{Name: "proxy-a", Zone: zone, Operation: zone + "/operation-1"},
		{Name: "not/a/name", Zone: zone},
	} {
		assert.NoError(t, c.provider.Delete(t.Context(), ref), ref)
	}
	assert.Zero(t, c.count(emulator.Delete))
}

func TestDeleteIsAskedOnce(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	made, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.Advance(boot)
	for range 3 {
		require.NoError(t, c.provider.Delete(t.Context(), made.Ref()))
	}
	assert.Equal(t, 1, c.count(emulator.Delete), "one that is going already is not asked again")
	got, err := c.provider.Get(t.Context(), made.Ref())
	require.NoError(t, err)
	assert.Equal(t, provider.StateStopping, got.State)
	c.Advance(boot)
	assert.Empty(t, c.Names())
}

func TestDeleteFindsTheInstanceWhateverTheHint(t *testing.T) {
	t.Parallel()
	for _, hint := range []string{"", "us-east1-c"} {
		c := startCloud(t, emulator.Options{}, Settings{})
		_, err := c.provider.Create(t.Context(), request("proxy-a"))
		require.NoError(t, err)
		require.NoError(t, c.provider.Delete(t.Context(), provider.Ref{Name: "proxy-a", Zone: hint}))
		c.Advance(boot)
		assert.Empty(t, c.Names(), hint)
	}
}

func TestAnInstanceWithoutOwnerIsNeverDeleted(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	insertForeign(t, c, "web-server", nil)
	err := c.provider.Delete(t.Context(), provider.Ref{Name: "web-server", Zone: zone})
	assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err))
	assert.Zero(t, c.count(emulator.Delete))
}

func TestAFailedDeleteIsNoSuccess(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		fault emulator.Fault
		class error
	}{
		"not allowed": {emulator.Fault{Status: 403, Reason: "forbidden"}, provider.ErrPermanent},
		"in trouble":  {emulator.Fault{Status: 500, Reason: "internalError"}, provider.ErrTransient},
		"cut off":     {emulator.Fault{DropRequest: true}, provider.ErrTransient},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			c := startCloud(t, emulator.Options{}, Settings{})
			made, err := c.provider.Create(t.Context(), request("proxy-a"))
			require.NoError(t, err)
			row.fault.Method = emulator.Delete
			c.Inject(row.fault)
			err = c.provider.Delete(t.Context(), made.Ref())
			require.Error(t, err)
			assert.Equal(t, row.class, provider.ClassOf(err))
			assert.Equal(t, []string{"proxy-a"}, c.Names())
		})
	}
}

func TestAnInstanceThatGoesBetweenTwoCallsIsSuccess(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	made, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.Inject(emulator.Fault{Method: emulator.Delete, Times: 1, Status: 404, Reason: "notFound",
		Message: "The resource 'projects/crawl-project/zones/us-east1-b/instances/proxy-a' was not found"})
	assert.NoError(t, c.provider.Delete(t.Context(), made.Ref()))
}

func TestAStoppedSpotInstanceIsSeenAndDeleted(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	insertForeign(t, c, "proxy-a", map[string]string{labelOwner: owner})
	c.Advance(boot)
	require.True(t, c.End(project, zone, "proxy-a"))
	c.Advance(boot)
	got, err := c.provider.Get(t.Context(), provider.Ref{Name: "proxy-a", Zone: zone})
	require.NoError(t, err)
	assert.Equal(t, provider.StateTerminated, got.State)
	assert.Empty(t, got.Address, "it has none any more")
	require.NoError(t, c.provider.Delete(t.Context(), got.Ref()))
	c.Advance(boot)
	assert.Empty(t, c.Names())
}
