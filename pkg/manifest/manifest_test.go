package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

const good = `
apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata:
  name: us-east1-a
  labels: {pool: news, country: us}
spec:
  mode: Managed
  provider: gce-main
  placement: {region: us-east1, zone: us-east1-b, machineType: e2-micro}
  cloudInit:
    inline: "#cloud-config\n"
  lifecycle: {drainTimeout: 5m, maxAge: 0}
`

func with(old, new string) string { return strings.Replace(good, old, new, 1) }

func TestGoodManifestIsReadWhole(t *testing.T) {
	t.Parallel()
	items, err := Read("a.yaml", []byte(good))
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.Equal(t, "us-east1-a", items[0].Name)
	require.Equal(t, map[string]string{"pool": "news", "country": "us"}, items[0].Labels)
	require.Equal(t, 2, items[0].Line)
	require.Equal(t, "#cloud-config\n", items[0].Proxy.Spec.CloudInit.Inline)
	require.Equal(t, fleet.Managed, items[0].Proxy.Spec.Mode)
}

func TestMaxLeasesSurvivesLeftOutZeroAndFive(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*int32{"": nil, "\n  maxLeases: 0": new(int32), "\n  maxLeases: 5": ptr(5)} {
		for _, form := range []func(string) string{asYAML, asJSON} {
			items, err := Read("a", []byte(form(text)))
			require.NoError(t, err)
			require.Equal(t, want, items[0].Proxy.Spec.MaxLeases)
			again, faults := fleet.Decode(fleet.Encode(items[0].Proxy.Spec))
			require.Empty(t, faults)
			require.Equal(t, want, again.MaxLeases, "through the stored form")
		}
	}
}

func ptr(n int32) *int32 { return &n }

func asYAML(maxLeases string) string {
	return with("provider: gce-main", "provider: gce-main"+maxLeases)
}

func asJSON(maxLeases string) string {
	extra := ""
	if _, value, ok := strings.Cut(maxLeases, ": "); ok {
		extra = `, "maxLeases": ` + value
	}
	return `{"apiVersion": "crawl.example.com/v1alpha1", "kind": "Proxy", "metadata": {"name": "a"},
		"spec": {"mode": "External", "endpoint": {"host": "h"}` + extra + `}}`
}

func TestFaultsNameFileLineAndField(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"unknown key of the spec", with("provider: gce-main", "provider: gce-main\n  maxLease: 3"), "a.yaml:10: us-east1-a: spec.maxLease: unknown key; did you mean maxLeases?"},
		{"unknown key of the envelope", good + "extra: 1\n", "a.yaml:14: us-east1-a: extra: unknown key"},
		{"unknown key of the metadata", with("name: us-east1-a", "name: us-east1-a\n  namespace: x"), "metadata.namespace: unknown key"},
		{"wrong type", with("provider: gce-main", "provider: [a]"), "a.yaml:9: us-east1-a: spec.provider: must be a string"},
		{"quoted number", with("provider: gce-main", "provider: gce-main\n  maxLeases: \"5\""), `spec.maxLeases: "5": must be a whole number`},
		{"out of range", with("provider: gce-main", "provider: gce-main\n  endpoint: {port: 65536}"), "spec.endpoint.port: 65536: must be between 1 and 65535"},
		{"port with a letter", with("provider: gce-main", "provider: gce-main\n  endpoint: {port: 80a}"), `spec.endpoint.port: "80a": must be a whole number`},
		{"label that is a number", with("pool: news", "pool: 7"), "metadata.labels.pool: 7: must be a string"},
		{"other apiVersion", with("v1alpha1", "v1"), `apiVersion: "crawl.example.com/v1": must be crawl.example.com/v1alpha1`},
		{"other kind", with("kind: Proxy", "kind: Pod"), `kind: "Pod": must be Proxy`},
		{"no name", with("  name: us-east1-a\n", ""), "metadata.name: must be set"},
		{"no spec", good[:strings.Index(good, "spec:")], "spec: must be set"},
		{"empty", "", "a.yaml: is empty"},
		{"only comments", "# nothing\n---\n# here\n", "a.yaml: is empty"},
		{"a list", "- a\n- b\n", "a.yaml:1: must be an object"},
		{"not YAML", "a: [1,\nb", "a.yaml:1: is not YAML"},
		{"not UTF-8", "a: b\nc: \xff\n", "a.yaml:2: is not UTF-8"},
		{"a key that stands twice", with("kind: Proxy", "kind: Proxy\nkind: Proxy"), "a.yaml:4: is not YAML"},
		{"a name that stands twice", good + "---" + good, "a.yaml:15: us-east1-a: metadata.name: must be unique: a.yaml:2 has it, too"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			items, err := Read("a.yaml", []byte(row.text))
			require.ErrorContains(t, err, row.want)
			require.Empty(t, items)
		})
	}
}

func TestAllFaultsOfAllDocumentsAreReported(t *testing.T) {
	t.Parallel()
	text := with("provider: gce-main", "provider: gce-main\n  maxLeases: 1001\n  endpoint: {port: -1}") + "---" + with("name: us-east1-a", "name: B")
	_, err := Read("a.yaml", []byte(text))
	var faults Faults
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults, 3)
	require.ErrorContains(t, err, "spec.maxLeases: 1001")
	require.ErrorContains(t, err, "spec.endpoint.port: -1")
	require.ErrorContains(t, err, `metadata.name: "B"`)
}

func TestSecretsOfABrokenManifestAreNotQuoted(t *testing.T) {
	t.Parallel()
	_, err := Read("a.yaml", []byte("inline: |\n  password: hunter2\n bad"))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestWhatGetPrintsCanBeAppliedAgain(t *testing.T) {
	t.Parallel()
	_, err := Read("a.yaml", []byte(with("  name: us-east1-a", "  name: us-east1-a\n  createTime: 2030-01-01T00:00:00Z")+"status: {phase: Running, whatever: [1]}\n"))
	require.NoError(t, err)
}

func TestAnchorsAreResolved(t *testing.T) {
	t.Parallel()
	text := with("  placement: {region: us-east1, zone: us-east1-b, machineType: e2-micro}", "  placement: &p {region: us-east1, zone: us-east1-b}")
	items, err := Read("a.yaml", []byte(text))
	require.NoError(t, err)
	require.Equal(t, "us-east1-b", items[0].Proxy.Spec.Placement.Zone)
}

func TestFilesFoldersAndStandardInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("one.yaml", good)
	write("deep/two.yml", with("us-east1-a", "two"))
	write("three.json", asJSON(""))
	write("notes.txt", "not a manifest")
	items, err := ReadPaths([]string{dir, "-"}, strings.NewReader(with("us-east1-a", "four")), nil)
	require.NoError(t, err)
	require.Len(t, items, 4)

	_, err = ReadPaths([]string{dir, filepath.Join(dir, "none.yaml"), "-"}, strings.NewReader(good), nil)
	require.ErrorContains(t, err, "none.yaml: cannot be read")
	require.ErrorContains(t, err, "must be unique")
	_, err = ReadPaths([]string{t.TempDir()}, nil, nil)
	require.ErrorContains(t, err, "has no .yaml, .yml, .json file")

	items, err = ReadPaths([]string{"-"}, strings.NewReader(with("us-east1-a", "${NAME}")), strings.NewReplacer("${NAME}", "five").Replace)
	require.NoError(t, err)
	require.Equal(t, "five", items[0].Name)
}

func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add(asJSON(""))
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		if items, err := Read("f", []byte(text)); err == nil {
			require.NotEmpty(t, items)
		}
	})
}
