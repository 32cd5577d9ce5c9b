package gcloud

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func install(t *testing.T) Install {
	t.Helper()
	in, err := Find()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("needed where CI is set: %v", err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
	return in
}

func TestEmulatorsStartOnFreePortsAndEndWhenStopped(t *testing.T) {
	in := install(t)
	in.Cache = t.TempDir()
	for name, start := range map[string]func(context.Context) (*Emulator, error){"firestore": in.StartFirestore, "pubsub": in.StartPubSub} {
		t.Run(name, func(t *testing.T) {
			e, err := start(t.Context())
			require.NoError(t, err)
			require.NoError(t, answersOK(t.Context(), e.Host))
			e.Stop()
			require.NoError(t, e.Err())
			require.Error(t, syscall.Kill(e.Pid(), 0))
			_, err = net.Dial("tcp", e.Host)
			require.Error(t, err)
			partial, err := filepath.Glob(filepath.Join(in.Cache, "*.jsa.*"))
			require.NoError(t, err)
			require.Empty(t, partial, "an archive that was not finished in time is not left behind")
		})
	}
}

func TestWhatIsMissingIsNamedWithItsMend(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find()
	require.ErrorContains(t, err, "java is not installed (Debian: apt-get install default-jre-headless)")
}

func TestAProgramThatEndsAtOnceIsReportedWithItsWords(t *testing.T) {
	in := install(t)
	in.Cache, in.Firestore = "", filepath.Join(t.TempDir(), "none.jar")
	_, err := in.StartFirestore(t.Context())
	require.ErrorContains(t, err, "Firestore emulator ended")
}

func TestArchivesAreForOneProgramAndOneJar(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	in := Install{Java: file("java", "1"), Cache: dir}
	one, other := in.archivePath(file("a.jar", "a")), in.archivePath(file("b.jar", "b"))
	require.NotEqual(t, one, other)
	require.Equal(t, one, in.archivePath(filepath.Join(dir, "a.jar")))
	in.Java = file("java", "another version")
	require.NotEqual(t, one, in.archivePath(filepath.Join(dir, "a.jar")))
	require.Empty(t, Install{Java: "none", Cache: dir}.archivePath("none"))
}
