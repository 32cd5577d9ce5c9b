package mock

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

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
