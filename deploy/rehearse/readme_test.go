package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/deploy/rehearse/standin"
)

// commands returns the lines of the blocks of deploy/README.md that are marked sh.
func commands(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var out []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		out = append(out, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	require.NotEmpty(t, out)
	return out
}

// makeCommand is what a line that calls make comes to.
var makeCommand = regexp.MustCompile(`^(.*)make (deploy|destroy) PROJECT=(\S+) REGION=(\S+)(?: FLAGS=(?:"(.*)"|(\S+)))?$`)

func TestFlagsOfTheReadmeExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	for _, target := range []string{"deploy", "destroy"} {
		assert.Contains(t, string(makefile), "scripts/"+target+`.sh --project "$(PROJECT)" --region "$(REGION)" $(FLAGS)`)
	}
	for _, line := range commands(t) {
		m := makeCommand.FindStringSubmatch(line)
		if m == nil || m[2] != "deploy" {
			continue
		}
		// Nothing but the dry run: the deploy itself is rehearsed at length.
		out := mustRun(t, "bash", "-c", "cd ../..; export TMPDIR="+t.TempDir()+"; VERSION=v1 "+m[1]+"scripts/deploy.sh --project "+m[3]+" --region "+m[4]+" "+m[5]+m[6]+" --dry-run")
		assert.Contains(t, out, "# Done", line)
	}
}

// testReadme has gcloud take the commands of the README.
func testReadme(t *testing.T, s *session) {
	revision, _ := dig(s.server.State().Resources[runPlace+"lease"], "status", "latestReadyRevisionName").(string)
	s.server.Put("run/projects/"+project+"/locations/"+region+"/revisions/"+revision, standin.Object{"metadata": standin.Object{"name": revision}})
	s.server.Load(standin.State{Policies: map[string]standin.Object{runPlace + "lease": {"version": 1.0, "etag": "ACAB", "bindings": []any{
		standin.Object{"role": "roles/run.invoker", "members": []any{"serviceAccount:crawler@other-project.iam.gserviceaccount.com"}}}}}})
	n := 0
	for _, line := range commands(t) {
		if makeCommand.MatchString(line) {
			continue
		}
		out, err := s.run(t, root, nil, "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(line, "REVISION", revision))
		assert.NoError(t, err, "%s\n%s", line, out)
		n++
	}
	require.Greater(t, n, 5)
	t.Log("checked: gcloud takes the commands of the README")
}
