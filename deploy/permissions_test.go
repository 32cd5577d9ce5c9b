package deploy

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rolePermissions are the permissions of predefined roles, as far as calls of ours need them
// (cloud.google.com/iam/docs/roles-permissions).
var rolePermissions = map[string][]string{
	"roles/datastore.user": {"datastore.databases.get", "datastore.entities.create", "datastore.entities.delete",
		"datastore.entities.get", "datastore.entities.list", "datastore.entities.update"},
	"roles/pubsub.publisher":             {"pubsub.topics.publish"},
	"roles/secretmanager.secretAccessor": {"secretmanager.versions.access"},
}

// rows returns the fields of a table's lines.
func rows(t *testing.T, file string) [][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var out [][]string
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			out = append(out, f)
		}
	}
	return out
}

// needs returns what each call needs, by permissions.txt: permissions and the role they come from.
func needs(t *testing.T) (permissions map[string][]string, role map[string]string) {
	t.Helper()
	permissions, role = map[string][]string{}, map[string]string{}
	for _, f := range rows(t, "permissions.txt") {
		if f[0] == "local" {
			for _, call := range f[1:] {
				permissions[call] = nil
			}
			continue
		}
		require.Len(t, f, 3, "%v", f)
		permissions[f[0]], role[f[0]] = strings.Split(f[1], ","), f[2]
	}
	return permissions, role
}

func vmPermissions(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("vms.role.yaml")
	require.NoError(t, err)
	var role struct {
		IncludedPermissions []string `yaml:"includedPermissions"`
	}
	require.NoError(t, yaml.Unmarshal(data, &role))
	return role.IncludedPermissions
}

func TestRolesAreWhatTheCodeCalls(t *testing.T) {
	t.Parallel()
	permissions, role := needs(t)
	used := map[string]bool{}
	vms := map[string]bool{}
	for _, function := range []string{"reconcile", "health", "lease"} {
		granted := map[string]bool{} // on more than one secret, which Cloud Run reads and not the code
		for _, f := range rows(t, "roles.txt") {
			if f[0] == function && f[4] == "always" && !strings.HasPrefix(f[1], "secret:") {
				granted[f[2]] = true
			}
		}
		served := map[string]bool{}
		for _, call := range slices.Sorted(maps.Keys(calls(t, "./functions/"+function))) {
			want, known := permissions[call]
			if !assert.True(t, known, "%s calls %s, which permissions.txt does not have", function, call) {
				continue
			}
			used[call] = true
			if want == nil {
				continue
			}
			assert.True(t, granted[role[call]], "%s calls %s and has not the role %s", function, call, role[call])
			served[role[call]] = true
			has := rolePermissions[role[call]]
			if role[call] == "@vms" {
				has = vmPermissions(t)
				for _, p := range want {
					vms[p] = true
				}
			}
			assert.Subset(t, has, want, "the role %s lacks what %s needs", role[call], call)
		}
		for r := range granted {
			assert.True(t, served[r], "%s has the role %s, which no call of its needs", function, r)
		}
	}
	for call := range permissions {
		assert.True(t, used[call], "permissions.txt has %s, which nothing calls", call)
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(vms)), vmPermissions(t), "the role over VMs is what the calls need, and no more")
}

func TestRolesAreWellFormed(t *testing.T) {
	t.Parallel()
	var accounts []string
	for _, f := range rows(t, "accounts.txt") {
		accounts = append(accounts, f[0])
	}
	seen := map[string]bool{}
	for _, f := range rows(t, "roles.txt") {
		require.Greater(t, len(f), 6, "%v: a reason is missing", f)
		assert.Contains(t, append([]string{"pubsub-agent", "crawlers"}, accounts...), f[0])
		assert.Contains(t, []string{"-", "database", "credentials", "cloud-init"}, f[3], f)
		assert.Contains(t, []string{"always", "monitoring", "apikeys", "source"}, f[4], f)
		assert.False(t, f[3] != "-" && f[1] != "project", "%v: only roles on the project are narrowed", f)
		if f[1] == "project" && f[3] == "-" {
			assert.Contains(t, []string{"@vms", "roles/monitoring.metricWriter", "roles/logging.logWriter", "roles/run.builder"}, f[2], "%v: too wide for a whole project", f)
		}
		key := strings.Join(f[:4], " ")
		assert.False(t, seen[key], "%s is there twice", key)
		seen[key] = true
	}
}
