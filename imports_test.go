package proxyfleet

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "crawl.example.com/proxyfleet"

// layers says for every package which packages of this module it may import outside its tests.
// Imports go one way: functions -> app -> {reconcile, health, lease} -> {store, provider, secret} -> fleet.
// A package that is not here fails the test: give it a line, and a reason to exist.
var layers = map[string][]string{
	"":                          {"functions/health", "functions/lease", "functions/reconcile"},
	"functions/reconcile":       {"pkg/app", "pkg/reconcile", "pkg/health", "pkg/health/pubsub", "pkg/fleet", "pkg/provider", "pkg/provider/gce", "pkg/provider/mock", "pkg/provider/registry", "pkg/secret", "pkg/store"},
	"functions/health":          {"pkg/app", "pkg/health", "pkg/fleet", "pkg/secret", "pkg/store"},
	"functions/lease":           {"pkg/app", "pkg/console", "pkg/lease", "pkg/fleet", "pkg/secret", "pkg/store"},
	"pkg/app":                   {"pkg/secret", "pkg/store", "pkg/store/firestore"},
	"pkg/reconcile":             {"pkg/fleet", "pkg/provider", "pkg/secret", "pkg/store"},
	"pkg/health":                {"pkg/fleet", "pkg/secret", "pkg/store"},
	"pkg/health/pubsub":         {"pkg/health"},
	"pkg/lease":                 {"pkg/fleet", "pkg/secret", "pkg/store"},
	"pkg/store":                 {"pkg/fleet"},
	"pkg/store/memory":          {"pkg/fleet", "pkg/store"},
	"pkg/store/firestore":       {"pkg/fleet", "pkg/store"},
	"pkg/store/storetest":       {"pkg/fleet", "pkg/store"},
	"pkg/provider":              nil,
	"pkg/provider/registry":     {"pkg/provider"},
	"pkg/provider/mock":         {"pkg/provider"},
	"pkg/provider/gce":          {"pkg/provider"},
	"pkg/provider/providertest": {"pkg/provider"},
	"pkg/secret":                nil,
	"pkg/console":               {"pkg/fleet", "pkg/store"},
	"pkg/client":                nil,
	"pkg/client/clienttest":     {"pkg/fleet", "pkg/lease", "pkg/store", "pkg/store/memory"},
	"pkg/manifest":              {"pkg/fleet"},
	"pkg/fleet":                 nil,
	"pkg/testclock":             nil,
}

// free are the folders of programs: composition roots, which may import what they like.
var free = []string{"emulator", "scripts", "deploy"}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		if slices.Contains(free, strings.Split(name, "/")[0]) {
			continue
		}
		allowed, known := layers[name]
		if !assert.True(t, known, "package %q is not in the layer table", name) {
			continue
		}
		for _, imported := range fields[1:] {
			if own, ok := strings.CutPrefix(imported, module+"/"); ok {
				assert.Contains(t, allowed, own, "package %q may not import it", name)
			}
		}
	}
}

func TestLeaseAndHealthDoNotLinkTheComputeClient(t *testing.T) {
	t.Parallel()
	deps := goList(t, "-deps", "./functions/lease", "./functions/health")
	for _, d := range deps {
		assert.False(t, strings.HasPrefix(d, "cloud.google.com/go/compute/apiv1"), d)
	}
}

func TestFleetNeedsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, d := range goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./pkg/fleet") {
		assert.Equal(t, module+"/pkg/fleet", d)
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
}
