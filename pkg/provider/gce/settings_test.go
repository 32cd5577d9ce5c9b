package gce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// entry reads a providers file with one entry of type gcp whose block is given.
func entry(t *testing.T, block string) provider.Config {
	t.Helper()
	text := "- name: gce-main\n  type: gcp\n"
	if block != "" {
		text += "  gcp:\n    " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n    ") + "\n"
	}
	configs, err := provider.ReadConfigs([]byte(text))
	require.NoError(t, err)
	require.Len(t, configs, 1)
	return configs[0]
}

func TestABlockNeedsNothingButAProject(t *testing.T) {
	t.Parallel()
	p, err := New(t.Context(), entry(t, "project: crawl-project"))
	require.NoError(t, err)
	s := p.(*Provider).settings
	assert.Equal(t, "https://compute.googleapis.com", s.Endpoint)
	assert.Equal(t, AddressExternal, s.Address)
	assert.True(t, s.secureBoot)
	assert.False(t, s.plain)
	assert.Contains(t, s.Image, "ubuntu", "Google's Debian images have no cloud-init")
}

func TestABlockCanSetEverything(t *testing.T) {
	t.Parallel()
	p, err := New(t.Context(), entry(t, `
project: crawl-project
network: crawl
subnetwork: projects/host-project/regions/us-east1/subnetworks/crawl
image: projects/crawl-project/global/images/family/proxy
networkTags: [crawl-proxy]
serviceAccount: proxy-vm@crawl-project.iam.gserviceaccount.com
labels: {team: crawl, cost-centre: "42"}
address: internal
networkTier: STANDARD
diskType: pd-balanced
diskSizeGb: 20
secureBoot: false
userDataKey: startup-script
maxRunDuration: 6h
requestTimeout: 10s
endpoint: http://127.0.0.1:9200
`))
	require.NoError(t, err)
	s := p.(*Provider).settings
	assert.Equal(t, 6*time.Hour, s.MaxRunDuration)
	assert.Equal(t, int64(20), s.DiskSizeGB)
	assert.Equal(t, map[string]string{"team": "crawl", "cost-centre": "42"}, s.Labels)
	assert.False(t, s.secureBoot)
	assert.True(t, s.plain)
}

func TestABadBlockIsRefusedWithAllItsFaults(t *testing.T) {
	t.Parallel()
	many := "labels:\n"
	for i := range 60 {
		many += fmt.Sprintf("  label-%d: x\n", i)
	}
	rows := map[string]struct {
		block string
		says  []string
	}{
		"no block":              {"", []string{"gcp.project: is required"}},
		"no project":            {"network: default", []string{"gcp.project: is required"}},
		"an impossible project": {"project: No/Project", []string{"gcp.project"}},
		"an unknown key":        {"project: crawl-project\nzone: us-east1-b", []string{"gcp.zone: is not known"}},
		"a wrong kind":          {"project: 7\nlabels: [a]", []string{"gcp.project", "gcp.labels"}},
		"a bad network":         {"project: crawl-project\nnetwork: ../x", []string{"gcp.network"}},
		"a bad subnetwork":      {"project: crawl-project\nsubnetwork: regions/x", []string{"gcp.subnetwork"}},
		"a bad image":           {"project: crawl-project\nimage: debian-12", []string{"gcp.image"}},
		"a bad tag":             {"project: crawl-project\nnetworkTags: [Crawl]", []string{"gcp.networkTags"}},
		"a bad account":         {"project: crawl-project\nserviceAccount: proxy", []string{"gcp.serviceAccount"}},
		"a bad label":           {"project: crawl-project\nlabels: {Team: crawl}", []string{"gcp.labels"}},
		"a label of ours":       {"project: crawl-project\nlabels: {proxyfleet-owner: me}", []string{"keys that begin with proxyfleet- are ours"}},
		"too many labels":       {"project: crawl-project\n" + many, []string{"60 labels, at most 59"}},
		"a bad address":         {"project: crawl-project\naddress: both", []string{"gcp.address"}},
		"a bad tier":            {"project: crawl-project\nnetworkTier: GOLD", []string{"gcp.networkTier"}},
		"a bad disk":            {"project: crawl-project\ndiskType: a/b\ndiskSizeGb: 5", []string{"gcp.diskType", "gcp.diskSizeGb"}},
		"a bad key":             {"project: crawl-project\nuserDataKey: ssh-keys", []string{"gcp.userDataKey"}},
		"too short a life":      {"project: crawl-project\nmaxRunDuration: 29s", []string{"gcp.maxRunDuration"}},
		"too long a life":       {"project: crawl-project\nmaxRunDuration: 2881h", []string{"gcp.maxRunDuration"}},
		"no patience":           {"project: crawl-project\nrequestTimeout: 1ms", []string{"gcp.requestTimeout"}},
		"no URL":                {"project: crawl-project\nendpoint: 127.0.0.1:80", []string{"gcp.endpoint"}},
		"a URL with a path":     {"project: crawl-project\nendpoint: https://x/compute", []string{"gcp.endpoint"}},
		"plain http elsewhere":  {"project: crawl-project\nendpoint: http://compute.internal", []string{"gcp.endpoint", "for this machine only"}},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			_, err := New(t.Context(), entry(t, row.block))
			require.Error(t, err)
			for _, says := range row.says {
				assert.ErrorContains(t, err, says)
				assert.Equal(t, 1, strings.Count(err.Error(), says), "said once: %v", err)
			}
			assert.ErrorContains(t, err, "gce-main")
		})
	}
	_, err := Open(Settings{DiskSizeGB: 1}, time.Now)
	assert.ErrorContains(t, err, "gcp.project: is required\ngcp.diskSizeGb: 1: must be between 10 and 65536")
}

func TestWithoutCredentialsEveryCallSaysSo(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/absent.json")
	p, err := New(t.Context(), entry(t, "project: crawl-project"))
	require.NoError(t, err, "nothing is looked for at start")
	for _, v := range []verb{verbCreate, verbGet, verbDelete, verbList} {
		err := put(t, p.(*Provider), v)
		assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), v)
		assert.ErrorContains(t, err, "credentials", v)
	}
}
