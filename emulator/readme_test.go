package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/emulator/proc"
)

// snippets returns the README's fenced blocks of one language.
func snippets(t *testing.T, language string) []string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		out = append(out, m[1])
	}
	require.NotEmpty(t, out)
	return out
}

// exports returns the variables that the plane told its user to set.
func (l *local) exports() []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^  export (.*)$`).FindAllStringSubmatch(l.stdout.String(), -1) {
		out = append(out, strings.Fields(m[1])...)
	}
	return out
}

// TestReadmeCommandsWork runs the commands and the program of the README as they stand there, but for
// the port.
func TestReadmeCommandsWork(t *testing.T) {
	l := up(t, "--store", "memory")
	l.lease(t, `{"labels":{"pool":"news"}}`)
	run := func(name string, args ...string) string {
		t.Helper()
		path, err := exec.LookPath(name)
		if err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("needed where CI is set: %v", err)
			}
			t.Skipf("SKIPPED: %v", err)
		}
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = append(append(os.Environ(), l.exports()...), "no_proxy=", "NO_PROXY=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	here := strings.NewReplacer("http://127.0.0.1:8080", l.LeaseURL)
	shell := snippets(t, "sh")
	require.Contains(t, run("sh", "-ec", here.Replace(shell[0])), `"endpoint"`)
	require.Contains(t, run("sh", "-ec", here.Replace(shell[1])), "hello from the origin")
	t.Run("python", func(t *testing.T) {
		python, err := exec.LookPath("python3")
		if err != nil || exec.Command(python, "-c", "import requests").Run() != nil {
			t.Skip("SKIPPED: python3 with requests is not installed")
		}
		require.Contains(t, run("python3", "-c", here.Replace(snippets(t, "python")[0])), "hello from the origin")
	})
}

// TestReadmeManifestBecomesAProxyHere applies the README's manifest but for what only a cloud has.
func TestReadmeManifestBecomesAProxyHere(t *testing.T) {
	port, err := proc.FreePort()
	require.NoError(t, err)
	here := strings.NewReplacer("provider: gce-main", "provider: mock", "port: 3128", "port: "+strconv.Itoa(port),
		"  maxLeases: 5", "  maxLeases: 5\n  healthCheck: {url: \"${ORIGIN_URL}/generate_204\"}")
	specs := filepath.Join(t.TempDir(), "readme.yaml")
	require.NoError(t, os.WriteFile(specs, []byte(here.Replace(snippets(t, "yaml")[0])), 0o600))
	l := up(t, "--store", "memory", "--specs", specs)
	l.lease(t, `{"labels":{"pool":"news"}}`)
}
