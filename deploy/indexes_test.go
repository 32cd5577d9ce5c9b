package deploy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

var update = flag.Bool("update", false, "write the files that are derived from code")

const indexesFile = "firestore.indexes.json"

// indexes writes what the store's queries need in the form of the Firebase tools, one entry a line,
// which is what the deploy's scripts read.
func indexes() string {
	var composite, overrides []string
	for _, i := range firestore.Indexes() {
		var fields []string
		for _, f := range i.Fields {
			fields = append(fields, fmt.Sprintf(`{"fieldPath": %q, "order": "ASCENDING"}`, f))
		}
		composite = append(composite, fmt.Sprintf(`    {"collectionGroup": %q, "queryScope": "COLLECTION", "fields": [%s]}`, i.Collection, strings.Join(fields, ", ")))
	}
	for _, f := range firestore.TTLs() {
		exempt := ""
		if slices.Contains(firestore.Exemptions(), f) {
			exempt = `, "indexes": []`
		}
		overrides = append(overrides, fmt.Sprintf(`    {"collectionGroup": %q, "fieldPath": %q, "ttl": true%s}`, f.Collection, f.Field, exempt))
	}
	for _, f := range firestore.Exemptions() {
		if !slices.Contains(firestore.TTLs(), f) {
			overrides = append(overrides, fmt.Sprintf(`    {"collectionGroup": %q, "fieldPath": %q, "indexes": []}`, f.Collection, f.Field))
		}
	}
	return fmt.Sprintf("{\n  \"indexes\": [\n%s\n  ],\n  \"fieldOverrides\": [\n%s\n  ]\n}\n", strings.Join(composite, ",\n"), strings.Join(overrides, ",\n"))
}

func TestIndexesAreThoseOfTheQueries(t *testing.T) {
	t.Parallel()
	if *update {
		require.NoError(t, os.WriteFile(indexesFile, []byte(indexes()), 0o600))
	}
	data, err := os.ReadFile(indexesFile)
	require.NoError(t, err)
	require.Equal(t, indexes(), string(data), "go test ./deploy -run Indexes -update writes it anew")
	require.True(t, json.Valid(data))
}

func TestTheDeployReadsEveryIndex(t *testing.T) {
	t.Parallel()
	var want []string
	for _, i := range firestore.Indexes() {
		want = append(want, "index|"+i.Collection+"|"+strings.Join(i.Fields, ","))
	}
	for _, f := range firestore.TTLs() {
		want = append(want, "ttl|"+f.Collection+"|"+f.Field)
	}
	for _, f := range firestore.Exemptions() {
		want = append(want, "exempt|"+f.Collection+"|"+f.Field)
	}
	assert.ElementsMatch(t, want, strings.Fields(shell(t, nil, `. steps/03-data.sh; index_lines`)))
}

// shell runs a script in this folder with the deploy's functions loaded.
func shell(t *testing.T, env []string, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", `DEPLOY=$PWD ROOT=$(cd .. && pwd); . lib.sh; . settings.sh; . render.sh; `+script)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
