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

// oneStep calls one function of the deploy's scripts as if nothing were known to be there.
const oneStep = `
MODE=apply PROJECT=$1 REGION=$2 FROM_SOURCE=off ONLY=foundation,data,services,edges
TRIES=1 ROOT=$PWD DEPLOY=$PWD/deploy
for f in deploy/lib.sh deploy/settings.sh deploy/render.sh deploy/steps/*.sh; do . "$f"; done
for f in accounts vms-role repositories buckets topics subscriptions secrets services jobs firewalls databases indexes fields images; do : > "$WORK/$f"; done
switches
place
RECONCILE_IMAGE=elsewhere/reconcile LEASE_IMAGE=elsewhere/lease PROVIDERS_HASH=x
shift 2
"$@"
rm -rf "$WORK"
`

// step runs one function of the scripts in a tree.
func (s *session) step(t *testing.T, tree string, command ...string) (string, error) {
	t.Helper()
	return s.run(t, tree, nil, append([]string{"bash", "-euo", "pipefail", "-c", oneStep, "step", project, region}, command...)...)
}

// testMistakes breaks the deploy in ways that have to be noticed. Each row changes one file, or takes
// something away from a plane that is there, and makes one thing anew.
func testMistakes(t *testing.T, deployed standin.State) {
	for _, row := range []struct {
		name           string
		file, old, new string
		without        []string // resources whose keys end so, with their policies
		step           string
		says           string // in the output; empty: the step ends well, and the comparison notices
	}{
		{name: "a flag that gcloud does not have", file: "deploy/steps/07-edges.sh", old: "--max-delivery-attempts=", new: "--delivery-attempts=",
			step: "subscription", says: "unrecognized arguments"},
		{name: "a deadline that Pub/Sub does not take", file: "deploy/settings.sh", old: "ACK_DEADLINE:=120", new: "ACK_DEADLINE:=1200",
			step: "subscription", says: "ack-deadline"},
		{name: "a role that does not exist", file: "deploy/roles.txt", old: "roles/iam.serviceAccountUser ", new: "roles/iam.serviceAccountUse ",
			step: "grants account:reconcile", says: "is not supported for this resource"},
		{name: "a permission that does not exist", file: "deploy/vms.role.yaml", old: "compute.instances.setTags", new: "compute.instances.setTag",
			without: []string{"roles/proxyfleetVms"}, step: "vms_role", says: "not valid"},
		{name: "a service before the secret that it mounts", without: []string{"services/proxyfleet-reconcile", "secrets/proxyfleet-providers"},
			step: "service reconcile", says: "was not found"},
		{name: "a service before its account", without: []string{"services/proxyfleet-lease", "serviceAccounts/" + email("lease")},
			step: "service lease", says: "does not exist"},
		{name: "a service that may not read its secret", without: []string{"services/proxyfleet-reconcile", "policies"},
			step: "service reconcile", says: "Permission denied on secret"},
		{name: "a field that Cloud Run does not have", file: "deploy/services/lease.yaml", old: "timeoutSeconds:", new: "timeoutSecond:",
			without: []string{"services/proxyfleet-lease"}, step: "service lease", says: "timeoutSecond"},
		{name: "a subscription before its topic", without: []string{"subscriptions/proxyfleet-push", "topics/proxyfleet-probes"},
			step: "subscription", says: "not found"},
		{name: "a grant that was forgotten", file: "deploy/roles.txt", old: "pubsub-agent  subscription:push", new: "#",
			without: []string{"subscriptions/proxyfleet-push"}, step: "subscription"},
		{name: "another audience than the service's address", file: "deploy/steps/07-edges.sh", old: `--oidc-token-audience="$RECONCILE_URL"`, new: `--oidc-token-audience="$LEASE_URL"`,
			without: []string{"jobs/proxyfleet-tick"}, step: "tick"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			state := without(deployed, row.without)
			s := start(t, &state)
			tree := copyTree(t)
			if row.file != "" {
				path := filepath.Join(tree, row.file)
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Contains(t, string(data), row.old, "the row is out of date")
				require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), row.old, row.new, 1)), 0o600))
			}
			out, err := s.step(t, tree, strings.Fields(row.step)...)
			if row.says == "" {
				require.NoError(t, err, "%s", out)
				assert.NotEmpty(t, faults(s.server.State()))
				return
			}
			require.Error(t, err, "%s", out)
			assert.Contains(t, out, row.says)
		})
	}
}

// without returns the state less some resources; "policies" stands for all policies.
func without(state standin.State, endings []string) standin.State {
	out := standin.State{Resources: maps.Clone(state.Resources), Policies: maps.Clone(state.Policies)}
	for _, ending := range endings {
		if ending == "policies" {
			out.Policies = map[string]standin.Object{}
		}
		for key := range state.Resources {
			if strings.HasSuffix(key, ending) {
				delete(out.Resources, key)
				delete(out.Policies, key)
			}
		}
	}
	return out
}
