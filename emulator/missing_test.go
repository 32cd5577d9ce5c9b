package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutJava hides java and gcloud from the programs that a test starts.
func withoutJava(t *testing.T) {
	t.Helper()
	_, err := buildOnce() // needs the go program, which PATH will no longer have
	require.NoError(t, err)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CLOUDSDK_ROOT_DIR", "")
}

func TestWithoutJavaItRunsInMemoryAndSaysSoInOneLine(t *testing.T) {
	withoutJava(t)
	l := up(t)
	require.Equal(t, storeMemory, l.Store)
	lines := strings.Split(l.stdout.String(), "\n")
	require.Contains(t, lines[0], "running on the memory store")
	require.Contains(t, lines[0], "java is not installed")
	l.lease(t, `{}`)
	l.interrupt(t)
}

func TestWithoutJavaTheFirestoreModeSaysWhatIsMissing(t *testing.T) {
	withoutJava(t)
	l := start(t, "--store", "firestore", "--port", "0")
	<-l.done
	require.Error(t, l.err)
	require.Contains(t, l.stderr.String(), "java is not installed")
	require.Contains(t, l.stderr.String(), "apt-get install")
}

func TestAStopBeforeItIsUpLeavesNothing(t *testing.T) {
	needEmulators(t)
	dir := t.TempDir()
	l := start(t, "--store", "firestore", "--port", "0", "--state", dir+"/state.json")
	require.NoError(t, l.cmd.Process.Signal(os.Interrupt))
	<-l.done
	require.NotContains(t, l.stdout.String(), "proxyfleet ready")
}
