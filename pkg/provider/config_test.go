package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProvidersFileIsRead(t *testing.T) {
	t.Parallel()
	configs, err := ReadConfigs([]byte("\ufeff" + `
# two clouds
- name: gce-main
  type: gcp
  maxInstances: 50
  gcp:
    project: my-project
- {name: demo, type: mock}
`))
	require.NoError(t, err)
	require.Len(t, configs, 2)
	assert.Equal(t, "gce-main", configs[0].Name)
	assert.Equal(t, "gcp", configs[0].Type)
	assert.Equal(t, 50, configs[0].MaxInstances)
	assert.Equal(t, "demo", configs[1].Name)
	assert.Zero(t, configs[1].MaxInstances)
	var block struct {
		Project string `yaml:"project"`
	}
	require.NoError(t, configs[0].Decode(&block))
	assert.Equal(t, "my-project", block.Project)
}

func TestNoProvidersCanBeMeant(t *testing.T) {
	t.Parallel()
	configs, err := ReadConfigs([]byte("[]"))
	require.NoError(t, err)
	assert.Empty(t, configs)
}

func TestFaultsOfTheProvidersFileSayWhereAndWhatToDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ promise, file, want string }{
		{"empty file", "", "is empty; write a list of providers, [] for none"},
		{"only a comment", "# soon\n", "is empty; write a list of providers, [] for none"},
		{"not UTF-8", "- name: a\n  type: \xff\n", "line 2: is not UTF-8 text; save the file as UTF-8"},
		{"not YAML", "- name: [a\n", "line 1: is not YAML: "},
		{"no list", "name: a\ntype: mock\n", "line 1: must be a list: each provider begins with `- name:`"},
		{"a word", "mock", "line 1: must be a list: each provider begins with `- name:`"},
		{"two documents", "- {name: a, type: mock}\n---\n- {name: b, type: mock}\n", "line 3: a second document begins here; keep all providers in one list"},
		{"entry is no mapping", "- mock\n", "line 1: entry 1: must be a mapping of keys to values"},
		{"entry is nothing", "- {name: a, type: mock}\n-\n", "line 2: entry 2: must be a mapping of keys to values"},
		{"no name", "- type: mock\n", "line 1: entry 1: name: must be set"},
		{"empty name", "- name: ''\n  type: mock\n", "line 1: entry 1: name: must be set"},
		{"name with a space", "- name: a b\n  type: mock\n", `line 1: entry 1 "a b": name: must be at most 63 characters without spaces`},
		{"name of other space", "- name: \"a\\u0085b\"\n  type: mock\n", "name: must be at most 63 characters without spaces"},
		{"long name", "- name: " + strings.Repeat("a", 64) + "\n  type: mock\n", "name: must be at most 63 characters without spaces"},
		{"name is a number", "- name: 7\n  type: mock\n", "line 1: entry 1: name: must be a string; put it in quotes"},
		{"name is nothing", "- name:\n  type: mock\n", "line 1: entry 1: name: has no value; give it one, or remove the key"},
		{"same name", "- {name: a, type: mock}\n- type: gcp\n  name: a\n", `line 3: entry 2 "a": name: "a" is the name of entry 1 "a" already; give each entry its own`},
		{"no type", "- name: a\n", `line 1: entry 1 "a": type: must be set`},
		{"type is a list", "- name: a\n  type: [mock]\n", `line 2: entry 1 "a": type: must be a string; put it in quotes`},
		{"cap below 0", "- name: a\n  type: mock\n  maxInstances: -1\n", `line 3: entry 1 "a": maxInstances: must be 0 (no cap) or more`},
		{"cap is no number", "- name: a\n  type: mock\n  maxInstances: many\n", `line 3: entry 1 "a": maxInstances: must be a whole number of at most 64 bits`},
		{"cap is too large", "- name: a\n  type: mock\n  maxInstances: 9223372036854775808\n", `line 3: entry 1 "a": maxInstances: must be a whole number of at most 64 bits`},
		{"cap is huge", "- name: a\n  type: mock\n  maxInstances: 99999999999999999999\n", `line 3: entry 1 "a": maxInstances: must be a whole number of at most 64 bits`},
		{"block of another type", "- name: a\n  type: mock\n  gcp: {project: p}\n", `line 3: entry 1 "a": gcp: this block does not belong to type mock; remove it, or change the type`},
		{"unknown key", "- name: a\n  type: mock\n  maxinstances: 3\n", `line 3: entry 1 "a": maxinstances: is not known; an entry has name, type, maxInstances and the block mock`},
		{"repeated key", "- name: a\n  type: mock\n  name: b\n", `line 3: entry 1 "a": name: is set on line 1 already; remove one`},
		{"alias", "- &e {name: a, type: mock}\n- *e\n", "line 2: entry 2: must be a mapping of keys to values"},
		{"alias as a value", "- name: &n a\n  type: *n\n", `line 2: entry 1 "a": type: aliases and tags are not read here; write the value out`},
		{"tag", "- name: !!str 7\n  type: mock\n", "name: aliases and tags are not read here; write the value out"},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			_, err := ReadConfigs([]byte(row.file))
			require.ErrorContains(t, err, row.want)
			var faults ConfigFaults
			require.ErrorAs(t, err, &faults)
			assert.Len(t, faults, 1, "one thing is wrong: %v", err)
		})
	}
}

func TestAllFaultsOfAProvidersFileAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	configs, err := ReadConfigs([]byte(`- name: a
  type: mock
  colour: red
  gcp: {}
- name: a
  maxInstances: -3
- type: mock
  mock: {}
  mock: {}
`))
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		`line 3: entry 1 "a": colour: is not known; an entry has name, type, maxInstances and the block mock`,
		`line 4: entry 1 "a": gcp: this block does not belong to type mock; remove it, or change the type`,
		`line 5: entry 2 "a": type: must be set`,
		`line 5: entry 2 "a": name: "a" is the name of entry 1 "a" already; give each entry its own`,
		`line 6: entry 2 "a": maxInstances: must be 0 (no cap) or more`,
		`line 7: entry 3: name: must be set`,
		`line 9: entry 3: mock: is set on line 8 already; remove one`,
	}, "\n"), err.Error())
	assert.Len(t, configs, 3, "what could be read can be checked further")
}

func TestNamesOfEntriesMadeInCodeAreChecked(t *testing.T) {
	t.Parallel()
	require.EqualError(t, CheckNames([]Config{{Name: "a"}, {Name: "b"}, {Name: "a"}, {}}).Err(),
		`provider "a": name: "a" is the name of provider "a" already; give each entry its own`+"\n"+`provider "": name: must be set`)
	require.NoError(t, CheckNames([]Config{{Name: "a"}, {Name: "b"}}).Err())
}

func TestSyntaxFaultsDoNotQuoteTheFile(t *testing.T) {
	t.Parallel()
	_, err := ReadConfigs([]byte("- name: a\n  type: mock\n  mock: {basicAuth: 'crawler:hunter2'\n"))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestProvidersFileIsLoaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	_, err := LoadConfigs(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "read providers file")

	require.NoError(t, os.WriteFile(path, []byte("- {name: a, type: mock}"), 0o600))
	configs, err := LoadConfigs(path)
	require.NoError(t, err)
	assert.Len(t, configs, 1)

	require.NoError(t, os.WriteFile(path, []byte("- {name: a}"), 0o600))
	configs, err = LoadConfigs(path)
	require.EqualError(t, err, "providers file "+path+`: line 1: entry 1 "a": type: must be set`)
	assert.Len(t, configs, 1)
}

func TestFaultFindsItsLine(t *testing.T) {
	t.Parallel()
	c := entryWith(t, "    nested:\n      zone: a\n")
	for _, row := range []struct {
		key  string
		line int
	}{{"type", 2}, {"mock", 3}, {"mock.nested.zone", 5}, {"mock.nested.region", 4}, {"mock.nested.zone.part", 5}, {"gcp.project", 1}, {"", 1}} {
		assert.Equal(t, row.line, c.Fault(row.key, "must be set").Line, row.key)
	}
	assert.Zero(t, Config{Name: "a"}.Fault("type", "must be set").Line)
}

func FuzzReadConfigs(f *testing.F) {
	f.Add([]byte("- name: a\n  type: mock\n  mock: {delay: 1s, words: [a], nested: {zone: b}}\n"))
	f.Add([]byte("- &a {name: *a, type: !!str mock}\n- ? [x]\n  : <<\n"))
	f.Add([]byte("---\n...\n--- |\n x\n- >-\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		configs, err := ReadConfigs(data)
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("an error that says nothing")
		}
		for _, c := range configs {
			_ = c.Decode(&settings{})
		}
	})
}
