package mock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

func TestInstancesOfAllCloudsShareAPortUntilTheLastIsGone(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	first, _ := listening(t, Settings{})
	second, _ := listening(t, Settings{})
	a, b, c := create(t, first, request("a", port)), create(t, first, request("b", port)), create(t, second, request("c", port))
	assert.True(t, taken(port))
	require.NoError(t, first.Delete(t.Context(), a.Ref()))
	require.NoError(t, second.Delete(t.Context(), c.Ref()))
	require.NoError(t, second.Delete(t.Context(), c.Ref()), "a second delete gives up no second share")
	assert.True(t, taken(port), "one instance has it still")
	require.NoError(t, first.Delete(t.Context(), b.Ref()))
	assert.False(t, taken(port))
	create(t, second, request("d", port))
	assert.True(t, taken(port), "and it can be taken again")
}

func TestEveryEndFreesThePort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		end string
		do  func(*Cloud, provider.Instance)
	}{
		{"delete", func(c *Cloud, i provider.Instance) { _ = c.Delete(t.Context(), i.Ref()) }},
		{"preempt", func(c *Cloud, i provider.Instance) { c.Preempt(i.Name) }},
		{"vanish", func(c *Cloud, i provider.Instance) { c.Vanish(i.Name) }},
		{"close", func(c *Cloud, _ provider.Instance) { _ = c.Close() }},
	} {
		port := freePort(t)
		c, _ := listening(t, Settings{StopDelay: time.Minute})
		i := create(t, c, request("a", port))
		require.True(t, taken(port), row.end)
		row.do(c, i)
		assert.False(t, taken(port), row.end)
		_, _ = c.Get(t.Context(), i.Ref())
		assert.False(t, taken(port), "%s: nor does it come back", row.end)
	}
}

func TestInstancesListenFromWhenTheyAreFirstSeenRunning(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		look string
		do   func(*Cloud, provider.CreateRequest)
	}{
		{"get", func(c *Cloud, req provider.CreateRequest) { get(t, c, req.Ref()) }},
		{"list", func(c *Cloud, _ provider.CreateRequest) { list(t, c) }},
		{"create", func(c *Cloud, req provider.CreateRequest) { create(t, c, req) }},
	} {
		c, clock := listening(t, Settings{ProvisionDelay: time.Minute})
		req := request("a", freePort(t))
		create(t, c, req)
		row.do(c, req)
		assert.False(t, taken(req.Port), row.look)
		clock.Advance(time.Minute)
		assert.False(t, taken(req.Port), "%s: nobody has looked yet", row.look)
		row.do(c, req)
		assert.True(t, taken(req.Port), row.look)
	}
}

func TestAPortOfAnotherProgramIsNamedAtCreate(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	other, err := listen(port)
	require.NoError(t, err)
	c, _ := listening(t, Settings{})
	_, err = c.Create(t.Context(), request("a", port))
	require.ErrorIs(t, err, provider.ErrTransient)
	require.ErrorContains(t, err, "PORT_TAKEN")
	require.ErrorContains(t, err, other.Addr().String())
	assert.Empty(t, c.Instances())
	require.NoError(t, other.Close())
	create(t, c, request("a", port))
}

func TestAnInstanceWithoutItsPortHasNotComeUp(t *testing.T) {
	t.Parallel()
	c, clock := listening(t, Settings{ProvisionDelay: time.Second})
	req := request("a", freePort(t))
	create(t, c, req)
	other, err := listen(req.Port)
	require.NoError(t, err)
	clock.Advance(time.Second)
	got := get(t, c, req.Ref())
	assert.Equal(t, provider.StateProvisioning, got.State)
	assert.Empty(t, got.Address)
	require.NoError(t, other.Close())
	assert.Equal(t, provider.StateRunning, get(t, c, req.Ref()).State)
}

func TestACloudWithoutListenersTakesNoPort(t *testing.T) {
	t.Parallel()
	c, _ := opened(t, Settings{})
	req := request("a", freePort(t))
	got := create(t, c, req)
	assert.Equal(t, provider.StateRunning, got.State)
	assert.Equal(t, host, got.Address)
	assert.False(t, taken(req.Port))
}

func TestAClosedCloudStillAnswers(t *testing.T) {
	t.Parallel()
	c, _ := listening(t, Settings{})
	req := request("a", freePort(t))
	create(t, c, req)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	assert.Equal(t, []string{req.Name}, list(t, c))
	create(t, c, request("b", req.Port))
	assert.False(t, taken(req.Port))
}
