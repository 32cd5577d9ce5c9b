package mock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

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
