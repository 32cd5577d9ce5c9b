package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/deploy/rehearse/standin"
)

// testCloudBuild submits cloudbuild.yaml, and then does its steps here, with a docker that only says
// what it was asked for.
func testCloudBuild(t *testing.T, s *session) {
	out, err := s.run(t, root, nil, "gcloud", "builds", "submit", ".", "--config=cloudbuild.yaml", "--ignore-file=deploy/build.gcloudignore",
		"--gcs-source-staging-dir=gs://"+project+"-proxyfleet-build/source", "--substitutions=_REGION="+region+",_VERSION=v2")
	require.NoError(t, err, "%s", out)
	files := uploaded(s)
	for _, f := range []string{"cloudbuild.yaml", "deploy/images/lease/main.go", "deploy/images/compile.sh", "scripts/rollout.sh", "pkg/fleet/proxy.go"} {
		assert.Contains(t, files, f)
	}
	for _, f := range files {
		assert.False(t, strings.HasPrefix(f, ".git/"), f)
	}

	tree := copyTree(t)
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "deploy/images/out"), 0o700))
	bin := filepath.Join(tree, "bin")
	require.NoError(t, os.MkdirAll(bin, 0o700))
	asked := filepath.Join(tree, "asked")
	docker := "#!/bin/sh\necho \"$@\" >> " + asked + "\ncase $1 in inspect) for a; do :; done; echo \"${a%:*}@" + "$(printf %s \"$a\" | sed 's/.*/sha256:&/' | sha256sum | cut -c 1-64 | sed 's/^/sha256:/')\";; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o700)) //nolint:gosec // a program
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "PROJECT=" + project, "NUMBER=" + number, "REGION=" + region, "NAME=proxyfleet", "VERSION=v2"}
	n := len(s.server.Requests())
	for _, step := range buildSteps(t) {
		switch step.ID {
		case "sources", "test", "compile": // the tests of this repository do the same
			continue
		}
		args := append([]string{step.Entrypoint}, step.Args...)
		for i := range args {
			args[i] = strings.NewReplacer("${_REGION}", region, "${_NAME}", "proxyfleet", "${_VERSION}", "v2", "$PROJECT_ID", project).Replace(args[i])
		}
		if step.ID == "candidate" { // what docker pushed is in the registry now
			for _, f := range []string{"reconcile", "health", "lease"} {
				data, err := os.ReadFile(filepath.Join(tree, "deploy/images/out", f+".image"))
				require.NoError(t, err)
				_, name, _ := strings.Cut(strings.TrimSpace(string(data)), "/proxyfleet/")
				s.server.Put(policyKey("repository")+"/dockerImages/"+name, standin.Object{"name": name})
			}
		}
		out, err := s.run(t, tree, env, args...)
		require.NoError(t, err, "%s: %s", step.ID, out)
	}
	for _, f := range []string{"reconcile", "health", "lease"} {
		service := s.server.State().Resources[runPlace+f]
		assert.Contains(t, fmt.Sprint(dig(service, "spec", "template", "spec", "containers", 0, "image")), "/proxyfleet/"+f+"@sha256:")
		assert.Equal(t, "v2", environmentOf(service)["VERSION"])
		assert.Equal(t, dig(service, "status", "latestReadyRevisionName"), dig(service, "status", "traffic", 0, "revisionName"))
		var order []string // each request about the service: deployed, looked at, given the traffic
		for _, r := range s.server.Requests()[n:] {
			if r.Writes() && strings.HasSuffix(r.Path, "/services/proxyfleet-"+f) {
				order = append(order, "write")
			} else if strings.HasPrefix(r.Host, "candidate---proxyfleet-"+f) {
				order = append(order, fmt.Sprint(r.Status))
			}
		}
		want := map[string]string{"lease": "200"}[f]
		if want == "" {
			want = "405"
		}
		assert.Equal(t, []string{"write", "403", want, "write"}, order, f)
	}
	t.Log("checked: cloudbuild.yaml is taken by Cloud Build, and its steps deploy by digest, test without traffic, then move it")
}

type buildStep struct {
	ID         string   `yaml:"id"`
	Entrypoint string   `yaml:"entrypoint"`
	Args       []string `yaml:"args"`
}

func buildSteps(t *testing.T) []buildStep {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "cloudbuild.yaml"))
	require.NoError(t, err)
	var file struct {
		Steps []buildStep `yaml:"steps"`
	}
	require.NoError(t, yaml.Unmarshal(data, &file))
	return file.Steps
}

// testSource deploys by Google's buildpack and compares with what our images get.
func testSource(t *testing.T, s *session, images standin.State) {
	out, err := s.deploy(t, "deploy.sh", nil, "--from-source", "--only", "services")
	require.NoError(t, err, "%s", out)
	files := uploaded(s)
	assert.Contains(t, files, "proxyfleet.go")
	assert.Contains(t, files, "pkg/provider/gce/create.go")
	for _, f := range files {
		first, _, _ := strings.Cut(f, "/")
		assert.Contains(t, []string{"go.mod", "go.sum", "proxyfleet.go", "functions", "pkg"}, first, f)
		assert.False(t, strings.HasSuffix(f, "_test.go"), f)
	}
	for _, f := range []string{"reconcile", "health", "lease"} {
		got, want := s.server.State().Resources[runPlace+f], images.Resources[runPlace+f]
		spec := func(o standin.Object, path ...any) string {
			return fmt.Sprint(dig(o, append([]any{"spec", "template", "spec"}, path...)...))
		}
		for _, field := range []string{"serviceAccountName", "containerConcurrency", "timeoutSeconds"} {
			assert.Equal(t, spec(want, field), spec(got, field), "%s: %s", f, field)
		}
		assert.Equal(t, spec(want, "containers", 0, "resources", "limits"), spec(got, "containers", 0, "resources", "limits"), f)
		assert.Equal(t, dig(want, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/maxScale"),
			dig(got, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/maxScale"), f)
		has, needs := environmentOf(got), environmentOf(want)
		delete(needs, "FUNCTION_TARGET") // the buildpack's image has it
		delete(has, "FUNCTION_TARGET")
		needs["METRICS_PORT"] = "off" // and no side-car
		assert.Equal(t, needs, has, f)
	}
	builds := 0
	for _, r := range s.server.Requests() {
		if strings.HasSuffix(r.Path, "/builds:submit") {
			builds++
			target := dig(r.Body, "buildpackBuild", "functionTarget")
			assert.Contains(t, []any{"Reconcile", "Health", "Lease"}, target)
			assert.Contains(t, fmt.Sprint(dig(r.Body, "buildpackBuild", "baseImage")), "go126")
		}
	}
	assert.Equal(t, 3, builds)
	t.Log("checked: source deploys get the same account, environment, secrets and limits, and upload nothing but what is compiled")
}

func environmentOf(service standin.Object) map[string]string {
	out := map[string]string{}
	list, _ := dig(service, "spec", "template", "spec", "containers", 0, "env").([]any)
	for _, e := range list {
		out[fmt.Sprint(dig(e, "name"))] = fmt.Sprint(dig(e, "value"))
	}
	return out
}

// uploaded returns the names in the archives of sources.
func uploaded(s *session) []string {
	names := map[string]bool{}
	for _, r := range s.server.Requests() {
		parts, _ := dig(r.Body, "multipart").([]any)
		for _, p := range append(parts, r.Body) {
			o, _ := p.(standin.Object)
			files, _ := o["files"].([]string)
			for _, f := range files {
				names[f] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// copyTree copies what the scripts need, so that a test may change it.
func copyTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	for _, dir := range []string{"deploy", "scripts"} {
		require.NoError(t, os.CopyFS(filepath.Join(tree, dir), os.DirFS(filepath.Join(root, dir))))
	}
	return tree
}
