package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/deploy/rehearse/standin"
)

const (
	root = "../.." // the repository's
	// alerts are the policies that a rehearsal makes; the others are like them.
	alerts = "MeltDown DeadLetters"
)

// requireGcloud skips where the real gcloud is missing, and in short runs; in CI it must be there.
func requireGcloud(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: the rehearsal takes minutes")
	}
	if _, err := exec.LookPath("gcloud"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("gcloud is missing: the deploy cannot be rehearsed")
		}
		t.Skip("SKIPPED: gcloud is missing: the deploy is not rehearsed")
	}
}

// start opens a session that may begin with a state.
func start(t *testing.T, state *standin.State) *session {
	t.Helper()
	docs, err := descriptions(t.Context())
	require.NoError(t, err)
	s, err := open(t.Context(), t.TempDir(), standin.Options{Discovery: docs})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.close()) })
	if state != nil {
		s.server.Load(*state)
	}
	return s
}

// run runs a command in dir and returns what it printed and whether it failed. A request that the
// stand-in could not answer, or that no API has, fails the test either way.
func (s *session) run(t *testing.T, dir string, env []string, command ...string) (string, error) {
	t.Helper()
	before := len(s.server.Requests())
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(slices.Concat(s.env, []string{"VERSION=v1", "ALERTS=" + alerts}), env...)
	out, err := cmd.CombinedOutput()
	for _, r := range s.server.Requests()[before:] {
		assert.False(t, r.Unknown, "%s %s%s: %s", r.Method, r.Host, r.Path, r.Error)
		if strings.HasSuffix(r.Host, "googleapis.com") {
			assert.Equal(t, "Bearer", r.Auth, "%s %s%s", r.Method, r.Host, r.Path)
		}
	}
	return string(out), err
}

// deploy runs a script of the deploy.
func (s *session) deploy(t *testing.T, script string, env []string, flags ...string) (string, error) {
	t.Helper()
	return s.run(t, root, env, append([]string{"scripts/" + script, "--project", project, "--region", region}, flags...)...)
}

// since returns the requests after the first n that changed something, as "METHOD host/path".
func (s *session) since(n int) []string {
	var out []string
	for _, r := range s.server.Requests()[n:] {
		if r.Writes() {
			out = append(out, r.Method+" "+r.Host+r.Path)
		}
	}
	return out
}

func TestWholeDeploy(t *testing.T) {
	requireGcloud(t)
	t.Parallel()
	s := start(t, nil)

	s.server.Fail(`POST .*run.googleapis.com/apis/.*/services$`, 400, 1)
	out, err := s.deploy(t, "deploy.sh", nil)
	require.Error(t, err, "a service could not be made")
	require.Contains(t, out, "run this again to go on")
	require.NotContains(t, s.server.State().Resources, pubsubPlace+"subscriptions/proxyfleet-push", "a deploy stops at what fails")
	t.Log("checked: a deploy that is cut off says so and stops")

	out, err = s.deploy(t, "deploy.sh", nil)
	require.NoError(t, err, "%s", out)
	require.Empty(t, faults(s.server.State()))
	deployed := s.server.State()
	assertMonitoring(t, deployed)
	t.Log("checked: the next run finishes it; OIDC audiences, roles both ways, ack deadline, dead letters, indexes both ways, images by digest, secrets, firewall, alerts, nobody public")

	n := len(s.server.Requests())
	out, err = s.deploy(t, "deploy.sh", nil)
	require.NoError(t, err, "%s", out)
	assert.Empty(t, s.since(n), "%s", out)
	assert.Contains(t, out, "\n0 commands were run.")
	assert.Equal(t, deployed, s.server.State())
	t.Log("checked: a second run changes nothing")

	t.Run("afterwards", func(t *testing.T) {
		t.Run("upgrade", func(t *testing.T) {
			t.Parallel()
			testUpgrade(t, start(t, &deployed))
		})
		t.Run("cloudbuild", func(t *testing.T) {
			t.Parallel()
			testCloudBuild(t, start(t, &deployed))
		})
		t.Run("source", func(t *testing.T) {
			t.Parallel()
			testSource(t, start(t, &deployed), deployed)
		})
		t.Run("readme", func(t *testing.T) {
			t.Parallel()
			testReadme(t, start(t, &deployed))
		})
		t.Run("destroy", func(t *testing.T) {
			t.Parallel()
			testDestroy(t, start(t, &deployed))
		})
		t.Run("mistakes", func(t *testing.T) {
			t.Parallel()
			testMistakes(t, deployed)
		})
	})
}

func assertMonitoring(t *testing.T, state standin.State) {
	t.Helper()
	var names []string
	for key, o := range state.Resources {
		if strings.Contains(key, "/alertPolicies/") {
			names = append(names, o["displayName"].(string))
		}
	}
	assert.ElementsMatch(t, strings.Fields(alerts), names)
	dashboards := 0
	for key := range state.Resources {
		if strings.Contains(key, "/dashboards/") {
			dashboards++
		}
	}
	assert.Equal(t, 1, dashboards)
}

// testUpgrade deploys the next version, whose lease function does not start at first.
func testUpgrade(t *testing.T, s *session) {
	serving := func(f string) any {
		return dig(s.server.State().Resources[runPlace+f], "status", "traffic", 0, "revisionName")
	}
	before := map[string]any{"lease": serving("lease"), "health": serving("health")}
	s.server.Fail(`GET candidate---proxyfleet-lease`, 503, 1)
	next := []string{"VERSION=v2"}
	out, err := s.deploy(t, "deploy.sh", next, "--only", "images,services")
	require.Error(t, err)
	assert.Contains(t, out, "lease: https://candidate---proxyfleet-lease")
	assert.Equal(t, before["lease"], serving("lease"), "a revision that fails its test gets no traffic")
	assert.NotEqual(t, before["health"], serving("health"), "the others go on")

	out, err = s.deploy(t, "deploy.sh", next, "--only", "images,services")
	require.NoError(t, err, "%s", out)
	assert.NotEqual(t, before["lease"], serving("lease"))
	assert.Empty(t, faults(s.server.State()))
	t.Log("checked: an upgrade is tested before it gets traffic; one that fails leaves the old one serving")
}

// testDestroy removes the plane around a VM, and then that, too.
func testDestroy(t *testing.T, s *session) {
	owner := strings.TrimSpace(mustRun(t, "bash", "-c", `DEPLOY=..; . ../lib.sh; . ../settings.sh; . ../steps/09-destroy.sh; PROJECT=`+project+` owner`))
	vm := "compute/projects/" + project + "/zones/us-central1-a/instances/proxy-abc"
	s.server.Put(vm, standin.Object{"name": "proxy-abc", "labels": standin.Object{"proxyfleet-owner": owner},
		"zone": "https://www.googleapis.com/compute/v1/projects/" + project + "/zones/us-central1-a"})
	s.server.Put("compute/projects/"+project+"/zones/us-central1-a/instances/foreign", standin.Object{"name": "foreign", "labels": standin.Object{"proxyfleet-owner": "somebody-else"},
		"zone": "https://www.googleapis.com/compute/v1/projects/" + project + "/zones/us-central1-a"})

	out, err := s.deploy(t, "destroy.sh", nil)
	require.NoError(t, err, "%s", out)
	left := remaining(s.server.State())
	assert.ElementsMatch(t, []string{"firestore/database", "compute/proxy-abc", "compute/foreign", "secretmanager/proxyfleet-providers"}, left)
	for _, said := range []string{"documents", "proxy-abc in us-central1-a", "proxyfleet-providers", "--all"} {
		assert.Contains(t, out, said)
	}
	assert.NotContains(t, out, "foreign")
	t.Log("checked: destroy leaves documents, VMs and the providers file, and says so")

	out, err = s.deploy(t, "destroy.sh", nil, "--all")
	require.NoError(t, err, "%s", out)
	assert.Equal(t, []string{"compute/foreign"}, remaining(s.server.State()))
	assert.Equal(t, []string{"cloudresourcemanager/projects/" + project}, policies(s.server.State()))
	t.Log("checked: destroy --all leaves nothing of ours, and nothing of others is touched")

	out, err = s.step(t, root, "eval", "look_role; vms_role")
	require.NoError(t, err, "%s", out)
	assert.Contains(t, out, "gcloud iam roles undelete proxyfleetVms")
	t.Log("checked: a deploy after that brings the deleted role back")
}

func mustRun(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// remaining lists what a removal may leave, in short, without what every project has.
func remaining(state standin.State) []string {
	var out []string
	for key, o := range state.Resources {
		api, _, _ := strings.Cut(key, "/")
		name := key[strings.LastIndex(key, "/")+1:]
		switch {
		case api == "serviceusage", strings.Contains(key, "/operations/"), strings.Contains(key, "/versions/"), strings.Contains(key, "/builds/"),
			strings.Contains(key, "/networks/default"), strings.HasPrefix(name, number), o["deleted"] == true, strings.Contains(key, "/revisions/"):
		case strings.Contains(key, "/databases/(default)"):
			out = append(out, "firestore/database")
		default:
			out = append(out, api+"/"+name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func policies(state standin.State) []string {
	var out []string
	for key, p := range state.Policies {
		if bindings, _ := p["bindings"].([]any); len(bindings) > 0 {
			out = append(out, key)
			for _, b := range bindings {
				if strings.Contains(fmt.Sprint(b), "proxyfleet") {
					out = append(out, fmt.Sprint(b))
				}
			}
		}
	}
	return out
}
