package gce

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// resource returns the instance resource that is asked for.
func resource(t *testing.T, block Settings, change func(*provider.CreateRequest)) *computepb.Instance {
	t.Helper()
	block.Project = project
	s, faults := block.resolve()
	require.Empty(t, faults)
	req := request("proxy-a")
	if change != nil {
		change(&req)
	}
	return s.insertRequest(req, "id").GetInstanceResource()
}

func TestTheLabelsSayWhoseItIs(t *testing.T) {
	t.Parallel()
	vm := resource(t, Settings{Labels: map[string]string{"team": "crawl"}}, nil)
	want := map[string]string{
		"proxyfleet-owner": owner, "proxyfleet-uid": "uid-of-proxy-a", "proxyfleet-incarnation": "1",
		"proxyfleet-spec": "abc123", "proxyfleet-proxy": "us-east1-a", "team": "crawl",
	}
	assert.Equal(t, want, vm.GetLabels())
	assert.Equal(t, want, vm.GetDisks()[0].GetInitializeParams().GetLabels(), "disks are on the bill too")
}

func TestUserDataIsInTheMetadataAndNowhereElse(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-the-password"
	vm := resource(t, Settings{}, func(r *provider.CreateRequest) { r.UserData = secret })
	found := map[string]string{}
	for _, item := range vm.GetMetadata().GetItems() {
		found[item.GetKey()] = item.GetValue()
	}
	assert.Equal(t, secret, found["user-data"])
	assert.Equal(t, "3128", found["proxyfleet-port"])
	vm.Metadata = nil
	assert.NotContains(t, vm.String(), secret)

	vm = resource(t, Settings{UserDataKey: "startup-script"}, func(r *provider.CreateRequest) { r.UserData = secret })
	keys := []string{}
	for _, item := range vm.GetMetadata().GetItems() {
		keys = append(keys, item.GetKey())
	}
	assert.Contains(t, keys, "startup-script")
	assert.NotContains(t, keys, "user-data")

	vm = resource(t, Settings{}, func(r *provider.CreateRequest) { r.UserData = "" })
	assert.NotContains(t, vm.String(), "user-data")
}

func TestAnInstanceEndsWithoutLeavingAnythingOnTheBill(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		spot    bool
		maxRun  time.Duration
		model   string
		restart bool
		action  string
		seconds int64
	}{
		"standard":                     {false, 0, "STANDARD", true, "", 0},
		"spot":                         {true, 0, "SPOT", false, "DELETE", 0},
		"standard with a longest life": {false, 6 * time.Hour, "STANDARD", true, "DELETE", 21600},
		"spot with a longest life":     {true, 30 * time.Second, "SPOT", false, "DELETE", 30},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			vm := resource(t, Settings{MaxRunDuration: row.maxRun}, func(r *provider.CreateRequest) { r.Spot = row.spot })
			s := vm.GetScheduling()
			assert.Equal(t, row.model, s.GetProvisioningModel())
			assert.Equal(t, row.restart, s.GetAutomaticRestart())
			assert.Equal(t, row.action, s.GetInstanceTerminationAction())
			assert.Equal(t, row.seconds, s.GetMaxRunDuration().GetSeconds())
			require.Len(t, vm.GetDisks(), 1)
			assert.True(t, vm.GetDisks()[0].GetBoot())
			assert.True(t, vm.GetDisks()[0].GetAutoDelete())
		})
	}
}

func TestTheNetworkIsWhatTheBlockSays(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		block               Settings
		network, subnetwork string
		v4, v6              int
	}{
		"default":              {Settings{}, "global/networks/default", "", 1, 0},
		"a network":            {Settings{Network: "crawl"}, "global/networks/crawl", "", 1, 0},
		"a subnetwork":         {Settings{Subnetwork: "crawl"}, "", "regions/us-east1/subnetworks/crawl", 1, 0},
		"both":                 {Settings{Network: "n", Subnetwork: "s"}, "global/networks/n", "regions/us-east1/subnetworks/s", 1, 0},
		"a shared subnetwork":  {Settings{Subnetwork: "projects/h/regions/us-east1/subnetworks/s"}, "", "projects/h/regions/us-east1/subnetworks/s", 1, 0},
		"an internal address":  {Settings{Address: AddressInternal}, "global/networks/default", "", 0, 0},
		"an IPv6 address only": {Settings{Address: AddressIPv6}, "global/networks/default", "", 0, 1},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			nics := resource(t, row.block, nil).GetNetworkInterfaces()
			require.Len(t, nics, 1)
			assert.Equal(t, row.network, nics[0].GetNetwork())
			assert.Equal(t, row.subnetwork, nics[0].GetSubnetwork())
			assert.Len(t, nics[0].GetAccessConfigs(), row.v4)
			assert.Len(t, nics[0].GetIpv6AccessConfigs(), row.v6)
		})
	}
}

func TestAVMHasNoRightsUnlessAnAccountIsGiven(t *testing.T) {
	t.Parallel()
	assert.Empty(t, resource(t, Settings{}, nil).GetServiceAccounts())
	accounts := resource(t, Settings{ServiceAccount: "vm@p.iam.gserviceaccount.com"}, nil).GetServiceAccounts()
	require.Len(t, accounts, 1)
	assert.Equal(t, "vm@p.iam.gserviceaccount.com", accounts[0].GetEmail())
}

func TestAVMIsShielded(t *testing.T) {
	t.Parallel()
	s := resource(t, Settings{}, nil).GetShieldedInstanceConfig()
	assert.True(t, s.GetEnableSecureBoot() && s.GetEnableVtpm() && s.GetEnableIntegrityMonitoring())
	no := false
	s = resource(t, Settings{SecureBoot: &no}, nil).GetShieldedInstanceConfig()
	assert.False(t, s.GetEnableSecureBoot())
	assert.True(t, s.GetEnableVtpm())
}

func TestTheStrictCloudTakesEveryKindOfInstanceAndGivesItsAddress(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		block   Settings
		spot    bool
		address string
	}{
		"external":                 {Settings{}, false, "198.51.100.7"},
		"spot":                     {Settings{NetworkTags: []string{"crawl-proxy"}, NetworkTier: "STANDARD"}, true, "198.51.100.7"},
		"internal":                 {Settings{Address: AddressInternal, Subnetwork: "s", ServiceAccount: "vm@p.iam.gserviceaccount.com"}, false, "198.51.100.7"},
		"ipv6":                     {Settings{Address: AddressIPv6, Labels: map[string]string{"team": "x"}}, false, "198.51.100.7"},
		"with a longest life":      {Settings{MaxRunDuration: time.Hour, UserDataKey: "startup-script"}, false, "198.51.100.7"},
		"spot with a longest life": {Settings{MaxRunDuration: time.Hour, DiskType: "pd-ssd", DiskSizeGB: 30}, true, "198.51.100.7"},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			c := startCloud(t, emulator.Options{OnRunning: func(emulator.Booted) string { return row.address }}, row.block)
			req := request("proxy-a")
			req.Spot = row.spot
			made, err := c.provider.Create(t.Context(), req)
			require.NoError(t, err)
			if row.block.Address != AddressInternal {
				got, err := c.provider.Get(t.Context(), made.Ref())
				require.NoError(t, err)
				assert.Empty(t, got.Address, "it has none before it runs")
			}
			c.Advance(boot)
			got, err := c.provider.Get(t.Context(), made.Ref())
			require.NoError(t, err)
			assert.Equal(t, row.address, got.Address)
		})
	}
}

func TestAVMWhosePlaneIsGoneEndsByItself(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{MaxRunDuration: time.Hour})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	c.Advance(59 * time.Minute)
	assert.Len(t, c.Names(), 1)
	c.Advance(2 * time.Minute)
	assert.Empty(t, c.Names())
}

func TestAnAddressIsTakenOnlyWhereThereIsOne(t *testing.T) {
	t.Parallel()
	ip := func(s string) *string { return &s }
	rows := map[string]struct {
		vm     *computepb.Instance
		choice string
		want   string
	}{
		"no interface":               {&computepb.Instance{}, AddressExternal, ""},
		"no external address":        {&computepb.Instance{NetworkInterfaces: []*computepb.NetworkInterface{{NetworkIP: ip("10.0.0.2")}}}, AddressExternal, ""},
		"an external one without IP": {&computepb.Instance{NetworkInterfaces: []*computepb.NetworkInterface{{AccessConfigs: []*computepb.AccessConfig{{}}}}}, AddressExternal, ""},
		"the second of two":          {&computepb.Instance{NetworkInterfaces: []*computepb.NetworkInterface{{AccessConfigs: []*computepb.AccessConfig{{}, {NatIP: ip("203.0.113.9")}}}}}, AddressExternal, "203.0.113.9"},
		"an internal one":            {&computepb.Instance{NetworkInterfaces: []*computepb.NetworkInterface{{NetworkIP: ip("10.0.0.2")}}}, AddressInternal, "10.0.0.2"},
		"no IPv6 address":            {&computepb.Instance{NetworkInterfaces: []*computepb.NetworkInterface{{NetworkIP: ip("10.0.0.2")}}}, AddressIPv6, ""},
		"an IPv6 address":            {&computepb.Instance{NetworkInterfaces: []*computepb.NetworkInterface{{Ipv6AccessConfigs: []*computepb.AccessConfig{{}, {ExternalIpv6: ip("2001:db8::1")}}}}}, AddressIPv6, "2001:db8::1"},
	}
	for promise, row := range rows {
		assert.Equal(t, row.want, addressOf(row.vm, row.choice), promise)
	}
}

func TestARequestIDIsOneForOneAttempt(t *testing.T) {
	t.Parallel()
	now := newClock().Now()
	first := requestID("proxy-a", zone, now, "")
	id, err := uuid.Parse(first)
	require.NoError(t, err)
	assert.NotEqual(t, uuid.Nil, id)
	assert.Equal(t, first, requestID("proxy-a", zone, now.Add(time.Second), ""), "a repeated call within the minute is the same attempt")
	ids := map[string]bool{first: true}
	for _, other := range []string{
		requestID("proxy-b", zone, now, ""),
		requestID("proxy-a", "us-east1-c", now, ""),
		requestID("proxy-a", zone, now.Add(time.Minute), ""),
		requestID("proxy-a", zone, now, "operation-1"),
	} {
		assert.False(t, ids[other])
		ids[other] = true
	}
}

func TestPartsOfAPathAreChecked(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"us-east1-b", "northamerica-northeast1-a", "europe-west12-c", "us-central1-ai1a"} {
		assert.True(t, zoneName.MatchString(good), good)
	}
	for _, bad := range []string{"", "us-east1", "us-east1-b/..", "US-EAST1-B", "us-east1-b\n", " us-east1-b"} {
		assert.False(t, zoneName.MatchString(bad), bad)
	}
	refs := map[string]bool{
		"us-east1-b/operation-17-abc": true, "us-east1-b/": false, "us-east1-b": false, "": false,
		"us-east1-b/a/b": false, "x/operation": false, "us-east1-b/..": false,
	}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		_, _, ok := parseOperation(ref)
		assert.Equal(t, refs[ref], ok, ref)
	}
	assert.Equal(t, "us-east1", regionOf("us-east1-b"))
	assert.Empty(t, regionOf(strings.Repeat("x", 3)))
}
