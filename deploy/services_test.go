package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/functions/reconcile"
	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// service is what a rendered file says that the functions and their callers depend on.
type service struct {
	Spec struct {
		Template struct {
			Spec struct {
				TimeoutSeconds int `yaml:"timeoutSeconds"`
				Containers     []struct {
					Name string `yaml:"name"`
					Env  []struct {
						Name  string `yaml:"name"`
						Value string `yaml:"value"`
					} `yaml:"env"`
				} `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

const renderVars = `PROJECT=my-project REGION=r VERSION=v1 CONFIG=c PROVIDERS_HASH=h TRAFFIC="$LATEST" RECONCILE_IMAGE=a HEALTH_IMAGE=b LEASE_IMAGE=c; switches; `

func rendered(t *testing.T, function string, env ...string) service {
	t.Helper()
	out := shell(t, env, `. steps/06-services.sh; `+renderVars+`render services/`+function+`.yaml`)
	var s service
	require.NoError(t, yaml.Unmarshal([]byte(out), &s), out)
	return s
}

func environment(s service) map[string]string {
	vars := map[string]string{"K_SERVICE": "set by Cloud Run"}
	for _, e := range s.Spec.Template.Spec.Containers[0].Env {
		vars[e.Name] = e.Value
	}
	return vars
}

func TestServicesSetWhatTheFunctionsRead(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"FUNCTION_TARGET": true, "K_SERVICE": true}
	for _, v := range app.Variables() {
		known[v.Name] = true
	}
	for _, row := range []struct {
		function, target string
		env              []string
		want             func(t *testing.T, c app.Config)
	}{
		{"reconcile", "Reconcile", nil, func(t *testing.T, c app.Config) {
			assert.Equal(t, "/etc/proxyfleet/providers.yaml", c.ProvidersConfig)
			assert.Equal(t, "proxyfleet-probes", c.ProbeTopic)
			assert.Equal(t, 9090, c.MetricsPort)
		}},
		{"reconcile", "Reconcile", []string{"NAME=crawl2", "DATABASE=crawl2", "MONITORING=off"}, func(t *testing.T, c app.Config) {
			assert.Equal(t, "crawl2", c.Database)
			assert.Equal(t, "crawl2-probes", c.ProbeTopic)
			assert.Equal(t, -1, c.MetricsPort)
		}},
		{"health", "Health", nil, func(*testing.T, app.Config) {}},
		{"lease", "Lease", nil, func(t *testing.T, c app.Config) { assert.Equal(t, app.AuthIAM, c.Auth) }},
		{"lease", "Lease", []string{"AUTH=apikeys"}, func(t *testing.T, c app.Config) {
			assert.Equal(t, app.AuthAPIKeys, c.Auth)
			assert.Equal(t, "proxyfleet-api-keys", c.APIKeysSecret)
		}},
	} {
		t.Run(row.function+strings.Join(row.env, ","), func(t *testing.T) {
			t.Parallel()
			vars := environment(rendered(t, row.function, row.env...))
			for name := range vars {
				assert.True(t, known[name], "no function reads %s", name)
			}
			assert.Equal(t, row.target, vars["FUNCTION_TARGET"])
			c, err := app.LoadConfig(func(name string) string {
				if name == "PROVIDERS_CONFIG" && vars[name] != "" {
					return "providers.yaml" // mounted there, not here
				}
				return vars[name]
			})
			require.NoError(t, err)
			assert.Equal(t, "my-project", c.ProjectID)
			assert.Equal(t, "v1", c.Version)
			if c.ProvidersConfig != "" {
				c.ProvidersConfig = vars["PROVIDERS_CONFIG"]
			}
			row.want(t, c)
		})
	}
}

func TestTimesFitIntoEachOther(t *testing.T) {
	t.Parallel()
	setting := func(name string) time.Duration {
		v := strings.TrimSpace(shell(t, nil, `echo "$`+name+`"`))
		if n, err := strconv.Atoi(v); err == nil {
			return time.Duration(n) * time.Second
		}
		d, err := time.ParseDuration(v)
		require.NoError(t, err)
		return d
	}
	timeout := func(function string) time.Duration {
		return time.Duration(rendered(t, function).Spec.Template.Spec.TimeoutSeconds) * time.Second
	}
	run, attempt, ack := setting("RUN_TIMEOUT"), setting("ATTEMPT_DEADLINE"), setting("ACK_DEADLINE")
	lock := run + constant(t, "../pkg/reconcile", "lockSlack")
	assert.Less(t, run, attempt, "a run ends before the scheduler gives up on it")
	assert.Less(t, attempt, lock, "the scheduler gives up before the lock expires: no second run beside a first that still works")
	assert.Less(t, run, timeout("reconcile"), "Cloud Run does not cut a run off")
	assert.LessOrEqual(t, attempt, timeout("reconcile"))
	assert.Less(t, constant(t, "../functions/health", "budget"), ack, "a message is done with before it is delivered again")
	assert.LessOrEqual(t, ack, timeout("health"))
	assert.Greater(t, timeout("lease"), 30*time.Second, "a caller may wait for 30 s")
}

// constant reads a duration in seconds that a package keeps to itself.
func constant(t *testing.T, dir, name string) time.Duration {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		if m := regexp.MustCompile(`\b` + name + `\s*=\s*(\d+) \* time\.Second`).FindSubmatch(data); m != nil {
			n, err := strconv.Atoi(string(m[1]))
			require.NoError(t, err)
			return time.Duration(n) * time.Second
		}
	}
	t.Fatalf("%s has no duration %s", dir, name)
	return 0
}

func TestTheProvidersFileIsOne(t *testing.T) {
	t.Parallel()
	out := shell(t, nil, `. steps/06-services.sh; `+renderVars+`render providers.yaml`)
	configs, err := provider.ReadConfigs([]byte(out))
	require.NoError(t, err)
	require.Len(t, configs, 1)
	assert.Equal(t, "gce-main", configs[0].Name)
	assert.Contains(t, out, "networkTags: [proxyfleet-proxy]", "the firewall rule is for this tag")
	file := filepath.Join(t.TempDir(), "providers.yaml")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	require.NoError(t, reconcile.CheckProviders(t.Context(), file), "the function starts with it")
	require.NoError(t, reconcile.CheckProviders(t.Context(), "providers.example.yaml"))
}

func TestWhatHasNoValueIsNotRendered(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.yaml")
	require.NoError(t, os.WriteFile(file, []byte("a: ${NAME}\nb: ${NO_SUCH_THING}\n"), 0o600))
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", `DEPLOY=$PWD; . lib.sh; . settings.sh; . render.sh; render `+file)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "${NO_SUCH_THING} has no value")
}

func TestOwnerIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]string{{"my-project", "(default)"}, {"my-project", "crawl2"}, {"p-12345", "a-rather-long-database-name-that-has-to-be-cut-off-somewhere"}} {
		got := shell(t, []string{"DATABASE=" + row[1]}, `PROJECT=`+row[0]+`; . steps/09-destroy.sh; owner`)
		assert.Equal(t, fleet.Owner(row[0], row[1]), got)
	}
}

func TestScriptsRunOnTheOldBashOfMacOS(t *testing.T) {
	t.Parallel()
	for _, script := range scripts(t) {
		data, err := os.ReadFile(script)
		require.NoError(t, err)
		code := regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(string(data), "")
		for _, modern := range []string{`declare -A`, `local -A`, `mapfile`, `readarray`, `\$\{\w+,,`, `\$\{\w+\^\^`, `wait -n`, `\|&`, `&>>`, `local -n`, `printf -v`} {
			assert.NotRegexp(t, regexp.MustCompile(modern), code, "%s", script)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-n", script)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Log("shellcheck is missing: scripts are not checked by it")
		return
	}
	cmd := exec.CommandContext(t.Context(), "shellcheck", append([]string{"-x", "-P", "..", "-S", "warning", "-e", "SC2034"}, scripts(t)...)...)
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func scripts(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.sh", "steps/*.sh", "images/*.sh", "../scripts/deploy.sh", "../scripts/destroy.sh", "../scripts/smoke.sh", "../scripts/rollout.sh"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		all = append(all, files...)
	}
	return all
}

func TestADryRunNeedsNothingAndShowsEverything(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "../scripts/deploy.sh", "--project", "my-project", "--region", "us-central1", "--dry-run")
	cmd.Env = append(os.Environ(), "VERSION=v1", "CRAWLERS=group:crawlers@example.com serviceAccount:c@other.iam.gserviceaccount.com", "TMPDIR="+work)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s", out.String())
	for _, want := range []string{
		"gcloud services enable", "service-accounts create proxyfleet-lease", "firestore databases create", "topics create proxyfleet-probes-dead",
		"gcloud builds submit", "run services replace", "scripts/smoke.sh lease", "scheduler jobs create http", "subscriptions create proxyfleet-push",
		"firewall-rules create", "--member=group:crawlers@example.com", "--member=serviceAccount:c@other.iam.gserviceaccount.com", "monitoring policies create",
		"Nothing was asked or done", "000000000000 stands for", "are in " + work,
	} {
		assert.Contains(t, out.String(), want)
	}
	named := regexp.MustCompile(regexp.QuoteMeta(work)+`/[\w.]+/[\w.-]+`).FindAllString(out.String(), -1)
	require.Greater(t, len(named), 10)
	for _, file := range named {
		assert.FileExists(t, file, "named by a command")
	}
	for _, line := range strings.Split(out.String(), "\n") {
		assert.LessOrEqual(t, len(line), 250, "hard to read: %s", line)
	}
}

func TestWrongSettingsAreRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		env   string
		flags []string
		want  string
	}{
		{"no project", "", []string{"--region", "r"}, "--project is missing"},
		{"no region", "", []string{"--project", "p", "--region", ""}, "--region needs a value"},
		{"an unknown flag", "", []string{"--projct", "p"}, "unknown flag --projct"},
		{"an unknown step", "", []string{"--project", "p", "--region", "r", "--only", "edge", "--dry-run"}, "there is no step edge"},
		{"everybody as a crawler", "CRAWLERS=group:a@b allUsers", []string{"--project", "p", "--region", "r", "--dry-run"}, "name who may call it"},
		{"an unknown way to authenticate", "AUTH=none", []string{"--project", "p", "--region", "r", "--dry-run"}, "must be iam or apikeys"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "bash", append([]string{"../scripts/deploy.sh"}, row.flags...)...)
			cmd.Env = append(os.Environ(), "VERSION=v1", row.env)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			assert.Contains(t, string(out), row.want)
			assert.NotContains(t, string(out), "gcloud")
		})
	}
}
