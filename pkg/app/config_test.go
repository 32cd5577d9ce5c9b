package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestDefaultsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(env(map[string]string{"PROJECT_ID": "my-project"}))
	require.NoError(t, err)
	assert.Equal(t, "(default)", c.Database)
	assert.Equal(t, "proxyfleet-probes", c.ProbeTopic)
	assert.Equal(t, 9090, c.MetricsPort)
	assert.Equal(t, "2m30s", c.RunTimeout.String())
	assert.Equal(t, AuthNone, c.Auth)
	assert.False(t, c.OnCloudRun)
}

func TestEveryVariableIsChecked(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, value, want string }{
		{"PROJECT_ID", "Not A Project", `PROJECT_ID: "Not A Project": must be a project id`},
		{"PROJECT_ID", "abcde", `PROJECT_ID: "abcde": must be a project id`},
		{"PROJECT_ID", "a" + strings.Repeat("b", 30), "PROJECT_ID"},
		{"FIRESTORE_DATABASE", "abc", "FIRESTORE_DATABASE"},
		{"FIRESTORE_DATABASE", "a" + strings.Repeat("b", 63), "FIRESTORE_DATABASE"},
		{"FIRESTORE_DATABASE", "x", `FIRESTORE_DATABASE: "x": must be (default) or`},
		{"PROVIDERS_CONFIG", "/no/such/file", "PROVIDERS_CONFIG"},
		{"SECRETS_DIR", "/no/such/dir", "SECRETS_DIR"},
		{"EXTRA_CA_FILE", "/no/such/file", "EXTRA_CA_FILE"},
		{"METRICS_PORT", "65536", `METRICS_PORT: "65536": must be between 0 and 65535, or off`},
		{"METRICS_PORT", "80a", "METRICS_PORT"},
		{"AUTH", "maybe", `AUTH: "maybe": must be iam or apikeys`},
		{"AUTH", "apikeys", "API_KEYS_SECRET: must be set when AUTH is apikeys"},
		{"RUN_TIMEOUT", "5s", "RUN_TIMEOUT"},
		{"RUN_TIMEOUT", "soon", "RUN_TIMEOUT"},
		{"LOG_LEVEL", "loud", "LOG_LEVEL"},
	} {
		t.Run(row.name+"="+row.value, func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{"PROJECT_ID": "my-project"}
			vars[row.name] = row.value
			_, err := LoadConfig(env(vars))
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestIDsOfAnyAllowedLengthAreTaken(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ project, database string }{
		{"abcdef", "abcd"},
		{"a" + strings.Repeat("b", 29), "a" + strings.Repeat("b", 62)},
		{"my-project-1", "(default)"},
	} {
		c, err := LoadConfig(env(map[string]string{"PROJECT_ID": row.project, "FIRESTORE_DATABASE": row.database}))
		require.NoError(t, err)
		require.Equal(t, row.database, c.Database)
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := LoadConfig(env(map[string]string{"AUTH": "x", "METRICS_PORT": "y", "RUN_TIMEOUT": "z"}))
	for _, name := range []string{"PROJECT_ID: must be set", "AUTH", "METRICS_PORT", "RUN_TIMEOUT"} {
		require.ErrorContains(t, err, name)
	}
}

func TestEmulatorsAreRefusedOnCloudRun(t *testing.T) {
	t.Parallel()
	_, err := LoadConfig(env(map[string]string{
		"PROJECT_ID": "my-project", "K_SERVICE": "lease",
		"FIRESTORE_EMULATOR_HOST": "127.0.0.1:1", "PUBSUB_EMULATOR_HOST": "127.0.0.1:2",
	}))
	require.ErrorContains(t, err, "FIRESTORE_EMULATOR_HOST: must not be set on Cloud Run")
	require.ErrorContains(t, err, "PUBSUB_EMULATOR_HOST: must not be set on Cloud Run")
}

func TestMetricsCanBeOff(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(env(map[string]string{"PROJECT_ID": "my-project", "METRICS_PORT": "off"}))
	require.NoError(t, err)
	assert.Equal(t, -1, c.MetricsPort)
}

func TestThereAreAtMostTwentyVariables(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, len(Variables()), 20)
}

func TestTheReadmeListsTheVariables(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	for _, v := range Variables() {
		row := "| `" + v.Name + "` | "
		if v.Default != "" {
			row += "`" + v.Default + "`"
		}
		row += " | " + v.Meaning + " |"
		assert.Contains(t, string(readme), row)
	}
}
