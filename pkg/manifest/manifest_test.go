package manifest

import (
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
		{"explicit zero", with("provider: gce-main", "provider: gce-main\n  endpoint: {port: 0}"), "spec.endpoint.port: 0: must be between 1 and 65535"},
		{"number beyond all bounds", with("provider: gce-main", "provider: gce-main\n  endpoint: {port: 99999999999999999999999}"), "spec.endpoint.port: \"99999999999999999999999\": must be a whole number"},
		{"fraction", with("provider: gce-main", "provider: gce-main\n  endpoint: {port: 80.5}"), "spec.endpoint.port: 80.5: must be a whole number"},
		{"a yes of other languages", with("provider: gce-main", "provider: gce-main\n  paused: yes"), `spec.paused: "yes": must be true or false`},
		{"a fault in a list", with("zone: us-east1-b", "zones: [us-east1-b,\n    us-west1-a]"), `a.yaml:11: us-east1-a: spec.placement.zones[1]: "us-west1-a": must be in`},
		{"a fault of a merged key", with("placement: {", "placement: {<<: {regin: x}, "), "a.yaml:10: us-east1-a: spec.placement.regin: unknown key; did you mean region?"},
		{"a label with a dot, at fault", with("pool: news", "example.com/pool: x y"), `a.yaml:6: us-east1-a: metadata.labels.example.com/pool: "x y": must be`},
		{"labels that are a list", with("{pool: news, country: us}", "[a]"), "a.yaml:6: us-east1-a: metadata.labels: must be an object"},
		{"name that is a number", with("name: us-east1-a", "name: 7"), "a.yaml:5: metadata.name: 7: must be a string: put it into quotes"},
		{"name that cannot be one", with("name: us-east1-a", "name: US"), `a.yaml:5: US: metadata.name: "US": must be 1 to 63`},
		{"metadata that is a word", "apiVersion: crawl.example.com/v1alpha1\nkind: Proxy\nmetadata: x\nspec: {mode: External, endpoint: {host: h}}\n", `a.yaml:3: metadata: "x": must be an object`},
		{"spec that is a word", good[:strings.Index(good, "spec:")] + "spec: Managed\n", `a.yaml:7: us-east1-a: spec: "Managed": must be an object`},
		{"spec without a value", good[:strings.Index(good, "spec:")] + "spec:\n", "a.yaml:7: us-east1-a: spec: must be set"},
		{"kind that is a list", with("kind: Proxy", "kind: [Proxy]"), "a.yaml:3: us-east1-a: kind: must be Proxy"},
		{"a List of Kubernetes", "apiVersion: v1\nkind: List\nitems: []\n", "a.yaml:3: items: unknown key"},
		{"a tag that changes what is meant", with("provider: gce-main", "provider: gce-main\n  maxLeases: !!int many"), "a.yaml:10: must have no tags"},
		{"a tag of another language", with("provider: gce-main", "provider: !ruby/object gce-main"), "a.yaml:9: must have no tags"},
		{"keys that are no text", with("provider: gce-main", "provider: gce-main\n  5: a\n  true: b\n  1.5: c"), "a.yaml:11: us-east1-a: spec.true: unknown key"},
		{"a list that has an anchor", "# c\n--- &a [b]\n", "a.yaml:2: must be an object"},
		{"an object that has an anchor", "--- &a\nb: c\n", "a.yaml:2: b: unknown key"},
		{"an object that has nothing", "# c\n{}\n", "a.yaml:2: apiVersion: must be set"},
		{"a key that is asked for", "? kind\n: Pod\n", "a.yaml:1: kind: \"Pod\": must be Proxy"},
		{"an alias of nothing", with("provider: gce-main", "provider: *nobody"), "a.yaml:9: is not YAML: could not find alias"},
		{"a tab for indentation", "a:\n\tb: 1\n", "a.yaml:2: is not YAML: found character '\t' that cannot start any token"},
		{"two JSON documents run together", asJSON("") + asJSON(""), "a.yaml:2: is not YAML"},
		{"empty", "", "a.yaml: is empty"},
		{"spaces", " \n\n", "a.yaml: is empty"},
		{"null", "~\n", "a.yaml: is empty"},
		{"only comments", "# nothing\n---\n# here\n", "a.yaml: is empty"},
		{"a list", "- a\n- b\n", "a.yaml:1: must be an object"},
		{"not YAML", "a: [1,\nb", "a.yaml:1: is not YAML"},
		{"not UTF-8", "a: b\nc: \xff\n", "a.yaml:2: is not UTF-8"},
		{"a key that stands twice", with("kind: Proxy", "kind: Proxy\nkind: Proxy"), `a.yaml:4: is not YAML: mapping key "kind" stands in line 3 already`},
		{"a key that stands twice in brackets", with("{region: us-east1, ", "{region: us-east1, region: us-east1, "), "a.yaml:10: is not YAML: mapping key \"region\" stands"},
		{"UTF-16", "\xff\xfea\x00", "a.yaml:1: is not UTF-8 text; save the file as UTF-8"},
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
	for name, text := range map[string]string{
		"a block text that ends early":    "inline: |\n  password: hunter2\n bad",
		"quotes that do not end":          "inline: \"hunter2\n",
		"a header of a block text":        "inline: |hunter2\n  a\n",
		"a reserved character":            "inline: @hunter2\n",
		"brackets that do not end":        "inline: [hunter2\n",
		"a spec that is the secret":       with("spec:", "spec: crawler:hunter2\nspecs:"),
		"a secret in place of its name":   with("provider: gce-main", "provider: gce-main\n  endpoint: {credentialsSecretRef: hunter2}"),
		"a secret as apiVersion":          with("crawl.example.com/v1alpha1", "crawler:hunter2"),
		"a secret as key of the metadata": with("name: us-east1-a", "name: us-east1-a\n  crawler:hunter2: x"),
		"a label of a wrong type":         with("pool: news", "pool: [hunter2]"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read("a.yaml", []byte(text))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add(asJSON(""))
	f.Add("a: &a [*a]")
	f.Add("%YAML 1.2\n---\n" + good + "...\n--- {a: !!str b}\n")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := Read("f", []byte(text))
		if err == nil {
			require.NotEmpty(t, items)
			return
		}
		require.Empty(t, items)
		var faults Faults
		require.ErrorAs(t, err, &faults)
		for _, fault := range faults {
			require.LessOrEqual(t, fault.Line, 1+strings.Count(text, "\n")+strings.Count(text, "\r"), "a return alone ends a line, too")
			require.NotContains(t, fault.Message, "cannot be parsed", "the parser panicked")
		}
	})
}
