package proxyfleet

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// generatedMain is what Google's buildpack writes to functions.local/app for a root package that
// imports the framework's functions package
// (github.com/GoogleCloudPlatform/buildpacks, cmd/go/functions_framework).
const generatedMain = `package main

import (
	"log"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	_ "` + module + `"
)

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	log.Fatal(funcframework.Start(port))
}
`

// buildGenerated builds the generated main into dir without writing into the tree.
func buildGenerated(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.Getwd()
	require.NoError(t, err)
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, []byte(generatedMain), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "functions.local/app/main.go"): source}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	binary := filepath.Join(dir, "app")
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary}
	if raceEnabled() {
		args = append(args, "-race") // what the tests have built already
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, "./functions.local/app")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

func TestGeneratedMainServesEachFunction(t *testing.T) {
	t.Parallel()
	binary := buildGenerated(t)
	for _, target := range []string{"Reconcile", "Health", "Lease"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			cmd := exec.CommandContext(t.Context(), binary)
			// Nothing is configured: the function is found and says what it lacks.
			cmd.Env = []string{"FUNCTION_TARGET=" + target, "PORT=" + strconv.Itoa(port)}
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			status, body := post(t, port)
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, body, "PROJECT_ID: must be set")
		})
	}
	t.Run("an unknown target ends the process", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary)
		cmd.Env = []string{"FUNCTION_TARGET=Nope", "PORT=" + strconv.Itoa(freePort(t))}
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.NoError(t, ctx.Err())
		require.Contains(t, string(out), "Nope")
	})
}

func TestRootHoldsOnePackage(t *testing.T) {
	t.Parallel()
	// The buildpack parses every .go file of the root, tests too, and wants one package.
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		require.Regexp(t, `(?m)^package proxyfleet$`, string(data), f)
	}
	require.NoFileExists(t, "Dockerfile")
}

func post(t *testing.T, port int) (int, string) {
	t.Helper()
	url := "http://127.0.0.1:" + strconv.Itoa(port) + "/"
	var resp *http.Response
	require.Eventually(t, func() bool {
		r, err := http.Post(url, "application/json", http.NoBody) //nolint:noctx // bounded by Eventually
		resp = r
		return err == nil
	}, 60*time.Second, 50*time.Millisecond)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
