package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/deploy/rehearse/standin"
)

// testMistakes breaks the deploy in ways that have to be noticed. Each row changes one file, takes
// something away from a plane that is there, and runs the step that would make it again.
func testMistakes(t *testing.T, deployed standin.State) {
	for _, row := range []struct {
		name            string
		file, old, new  string
		without         string // resources whose keys contain this
		withoutPolicies bool
		only            string
		says            string // in the output; empty: the deploy ends well, and the comparison notices
	}{
		{name: "a flag that gcloud does not have", file: "deploy/steps/07-edges.sh", old: "--max-delivery-attempts=", new: "--delivery-attempts=",
			without: "subscriptions/proxyfleet-push", only: "edges", says: "unrecognized arguments"},
		{name: "a deadline that Pub/Sub does not take", file: "deploy/settings.sh", old: "ACK_DEADLINE:=120", new: "ACK_DEADLINE:=1200",
			without: "subscriptions/proxyfleet-push", only: "edges", says: "ack"},
		{name: "a role that does not exist", file: "deploy/roles.txt", old: "roles/pubsub.publisher ", new: "roles/pubsub.publish ",
			withoutPolicies: true, only: "data", says: "is not supported for this resource"},
		{name: "a permission that does not exist", file: "deploy/vms.role.yaml", old: "compute.instances.setTags", new: "compute.instances.setTag",
			only: "foundation", says: "not valid"},
		{name: "a service before the secret that it mounts", file: "deploy/services/reconcile.yaml", old: "secretName: ${NAME}-providers", new: "secretName: ${NAME}-provider",
			without: "services/proxyfleet-reconcile", only: "services", says: "was not found"},
		{name: "a service that may not read its secret", withoutPolicies: true, without: "services/proxyfleet-reconcile", only: "services", says: "Permission denied on secret"},
		{name: "a field that Cloud Run does not have", file: "deploy/services/lease.yaml", old: "timeoutSeconds:", new: "timeoutSecond:",
			without: "services/proxyfleet-lease", only: "services", says: "timeoutSecond"},
		{name: "a topic too late for its subscription", without: "topics/proxyfleet-probes", only: "edges", says: "not found"},
		{name: "a dead-letter agent without its role", file: "deploy/roles.txt", old: "pubsub-agent  subscription:push", new: "#",
			without: "subscriptions/proxyfleet-push", only: "edges"},
		{name: "another audience than the service's address", file: "deploy/steps/07-edges.sh", old: `--oidc-token-audience="$RECONCILE_URL"`, new: `--oidc-token-audience="$LEASE_URL"`,
			without: "jobs/proxyfleet-tick", only: "edges"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			state := standin.State{Resources: maps.Clone(deployed.Resources), Policies: maps.Clone(deployed.Policies)}
			for key := range deployed.Resources {
				if row.without != "" && strings.HasSuffix(key, row.without) {
					delete(state.Resources, key)
					delete(state.Policies, key)
				}
			}
			if row.withoutPolicies {
				state.Policies = map[string]standin.Object{}
			}
			s := start(t, &state)
			tree := copyTree(t)
			if row.file != "" {
				path := filepath.Join(tree, row.file)
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Contains(t, string(data), row.old, "the row is out of date")
				require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), row.old, row.new, 1)), 0o700)) //nolint:gosec // may be a script
			}
			out, err := s.run(t, tree, []string{"TRIES=1"}, "scripts/deploy.sh", "--project", project, "--region", region, "--only", row.only)
			if row.says == "" {
				require.NoError(t, err, "%s", out)
				assert.NotEmpty(t, faults(s.server.State()))
				return
			}
			require.Error(t, err, "%s", out)
			assert.Contains(t, out, row.says)
		})
	}
	t.Log("checked: wrong flags, values, roles, permissions, orders and audiences fail")
}
