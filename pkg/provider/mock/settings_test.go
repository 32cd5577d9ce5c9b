package mock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

func config(t *testing.T, block string) provider.Config {
	t.Helper()
	configs, err := provider.ReadConfigs([]byte("- name: demo\n  type: mock\n  mock:\n" + block))
	require.NoError(t, err)
	return configs[0]
}

func TestEverySettingIsReadFromTheProvidersFile(t *testing.T) {
	t.Parallel()
	p, err := New(t.Context(), config(t, `
    provisionDelay: 2s
    stopDelay: 3s
    purgeDelay: 4s
    basicAuth: "user:pa:ss"
    failNextCreates: 1
    failWith: quota
    loseResponses: 2
    listLag: 3
    capacity: 4
    createLimit: 5
    createWindow: 10s
    stockOut: [us-east1-b]
`))
	require.NoError(t, err)
	assert.Equal(t, Settings{
		ProvisionDelay: 2 * time.Second, StopDelay: 3 * time.Second, PurgeDelay: 4 * time.Second, BasicAuth: "user:pa:ss",
		FailNextCreates: 1, FailWith: "quota", LoseResponses: 2, ListLag: 3, Capacity: 4, CreateLimit: 5,
		CreateWindow: 10 * time.Second, StockOut: []string{"us-east1-b"},
	}, p.(*Cloud).settings)
}

func TestAllFaultsOfTheBlockAreReported(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), config(t, "    basicAuth: hunter2\n    failNextCreates: -1\n    failWith: magic\n    listLag: -2\n    capacity: many\n    speed: 1\n"))
	require.EqualError(t, err, `line 4: entry 1 "demo": mock.basicAuth: must be user:password
line 5: entry 1 "demo": mock.failNextCreates: must be 0 or more
line 6: entry 1 "demo": mock.failWith: must be one of permanent, quota, stockOut, transient
line 7: entry 1 "demo": mock.listLag: must be 0 or more
line 8: entry 1 "demo": mock.capacity: must be a whole number of at most 64 bits
line 9: entry 1 "demo": mock.speed: is not known; known here are basicAuth, capacity, createLimit, createWindow, failNextCreates, failWith, listLag, loseResponses, provisionDelay, purgeDelay, stockOut, stopDelay`)
	_, err = New(t.Context(), config(t, "    provisionDelays: 1s\n"))
	require.ErrorContains(t, err, `line 4: entry 1 "demo": mock.provisionDelays: is not known; known here are basicAuth, capacity,`)
}

func TestOpenChecksSettings(t *testing.T) {
	t.Parallel()
	_, err := Open(Settings{BasicAuth: ":hunter2", Capacity: -1, CreateLimit: -1, LoseResponses: -1, StopDelay: -1})
	require.EqualError(t, err, "loseResponses: must be 0 or more\ncapacity: must be 0 or more\ncreateLimit: must be 0 or more\n"+
		"stopDelay: must be 0 or more\nbasicAuth: must be user:password")
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestEveryConstructionIsACloudOfItsOwn(t *testing.T) {
	t.Parallel()
	c := config(t, "    {}\n")
	first, err := New(t.Context(), c)
	require.NoError(t, err)
	second, err := New(t.Context(), c)
	require.NoError(t, err)
	first.(*Cloud).Place(provider.Instance{Name: "a", Owner: "ours"})
	assert.Len(t, list(t, first.(*Cloud)), 1)
	assert.Empty(t, list(t, second.(*Cloud)))
}
