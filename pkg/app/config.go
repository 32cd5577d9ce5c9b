package app

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

// Auth says how callers of the lease function prove who they are.
type Auth string

// The ways to authenticate.
const (
	AuthNone    Auth = ""        // nobody is asked; refused on Cloud Run
	AuthIAM     Auth = "iam"     // Cloud Run has checked an ID token already
	AuthAPIKeys Auth = "apikeys" // bearer keys, listed by hash in the secret API_KEYS_SECRET
)

// Config is the environment of a function, read once and checked as a whole.
type Config struct {
	ProjectID       string        // Google Cloud project
	Database        string        // Firestore database, one fleet each
	ProvidersConfig string        // file that lists the providers; reconcile only
	ProbeTopic      string        // Pub/Sub topic that probes are fanned out over
	MetricsPort     int           // Prometheus listener; 0 means any free port, -1 means none
	SecretsDir      string        // folder that secrets are read from; empty: Secret Manager
	Auth            Auth          // lease only
	APIKeysSecret   string        // secret that lists the API keys; with AuthAPIKeys
	ExtraCAFile     string        // PEM file of authorities that probes trust besides the system's
	RunTimeout      time.Duration // how long one reconcile run may take; 10s..25m
	LogLevel        string        // debug, info, warn or error
	Version         string        // of the deployed build, for people
	OnCloudRun      bool          // K_SERVICE is set
	FirestoreHost   string        // emulator, for display
	PubSubHost      string        // emulator, for display
}

// Variable is one environment variable that the functions read.
type Variable struct {
	Name    string
	Default string // as text; empty where there is none
	Meaning string
	parse   func(c *Config, value string) error
}

// idPattern leaves out the length: a counted repetition takes long to compile, which every start would pay.
var idPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*[a-z0-9]$`)

const defaultDatabase = "(default)"

// Variables returns all environment variables that the functions read, in the order of the README.
func Variables() []Variable {
	return []Variable{
		{"PROJECT_ID", "", "Google Cloud project; required", func(c *Config, v string) error {
			c.ProjectID = v
			return matchID(v, 6, 30, "must be a project id such as my-crawl-project")
		}},
		{"FIRESTORE_DATABASE", defaultDatabase, "Firestore database; each database is a fleet of its own", func(c *Config, v string) error {
			c.Database = v
			if v == defaultDatabase {
				return nil
			}
			return matchID(v, 4, 63, "must be (default) or 4 to 63 lower-case letters, digits and hyphens")
		}},
		{"PROVIDERS_CONFIG", "", "file that lists the providers; reconcile only", func(c *Config, v string) error {
			c.ProvidersConfig = v
			return readable(v)
		}},
		{"PROBE_TOPIC", "proxyfleet-probes", "Pub/Sub topic that probes are fanned out over", text(func(c *Config) *string { return &c.ProbeTopic })},
		{"METRICS_PORT", "9090", "port of the Prometheus listener; 0: any free one, off: none", parseMetricsPort},
		{"SECRETS_DIR", "", "folder that secrets are read from instead of Secret Manager", func(c *Config, v string) error {
			c.SecretsDir = v
			return readable(v)
		}},
		{"AUTH", "", "iam or apikeys: how callers of the lease function are known; required on Cloud Run", parseAuth},
		{"API_KEYS_SECRET", "", "secret with a line `name: sha256` per API key; with AUTH=apikeys", text(func(c *Config) *string { return &c.APIKeysSecret })},
		{"EXTRA_CA_FILE", "", "PEM file of authorities that probes trust besides the system's", func(c *Config, v string) error {
			c.ExtraCAFile = v
			return readable(v)
		}},
		{"RUN_TIMEOUT", "150s", "how long one reconcile run may take, 10s to 25m; below the scheduler's deadline", parseRunTimeout},
		{"LOG_LEVEL", "info", "debug, info, warn or error", parseLogLevel},
		{"VERSION", "dev", "version of this build, shown in /v1/status", text(func(c *Config) *string { return &c.Version })},
		{"K_SERVICE", "", "set by Cloud Run; turns on the checks that production needs", func(c *Config, v string) error {
			c.OnCloudRun = v != ""
			return nil
		}},
		{"FIRESTORE_EMULATOR_HOST", "", "Firestore emulator; refused on Cloud Run", text(func(c *Config) *string { return &c.FirestoreHost })},
		{"PUBSUB_EMULATOR_HOST", "", "Pub/Sub emulator; refused on Cloud Run", text(func(c *Config) *string { return &c.PubSubHost })},
	}
}

// LoadConfig reads the environment through getenv, such as os.Getenv. It reports all faults at once,
// each with the variable's name and what it must be.
func LoadConfig(getenv func(string) string) (Config, error) {
	var c Config
	var faults []error
	for _, v := range Variables() {
		value := getenv(v.Name)
		if value == "" {
			value = v.Default
		}
		if value == "" {
			continue
		}
		if err := v.parse(&c, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q: %w", v.Name, value, err))
		}
	}
	return c, errors.Join(append(faults, c.check()...)...)
}

// check finds what is wrong between variables.
func (c Config) check() []error {
	var faults []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	add(c.ProjectID == "", "PROJECT_ID: must be set")
	add(c.Auth == AuthAPIKeys && c.APIKeysSecret == "", "API_KEYS_SECRET: must be set when AUTH is apikeys")
	add(c.OnCloudRun && c.FirestoreHost != "", "FIRESTORE_EMULATOR_HOST: must not be set on Cloud Run")
	add(c.OnCloudRun && c.PubSubHost != "", "PUBSUB_EMULATOR_HOST: must not be set on Cloud Run")
	return faults
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		*field(c) = v
		return nil
	}
}

func matchID(v string, least, most int, must string) error {
	if len(v) < least || len(v) > most || !idPattern.MatchString(v) {
		return errors.New(must)
	}
	return nil
}

func readable(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("must exist and be readable: %w", err)
	}
	return nil
}

func parseMetricsPort(c *Config, v string) error {
	if v == "off" {
		c.MetricsPort = -1
		return nil
	}
	port, err := strconv.Atoi(v)
	if err != nil || port < 0 || port > 65535 {
		return errors.New("must be between 0 and 65535, or off")
	}
	c.MetricsPort = port
	return nil
}

func parseAuth(c *Config, v string) error {
	c.Auth = Auth(v)
	if c.Auth != AuthIAM && c.Auth != AuthAPIKeys {
		return errors.New("must be iam or apikeys")
	}
	return nil
}

func parseRunTimeout(c *Config, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 10*time.Second || d > 25*time.Minute {
		return errors.New("must be a duration between 10s and 25m")
	}
	c.RunTimeout = d
	return nil
}

func parseLogLevel(c *Config, v string) error {
	c.LogLevel = v
	switch v {
	case "debug", "info", "warn", "error":
		return nil
	}
	return errors.New("must be debug, info, warn or error")
}
