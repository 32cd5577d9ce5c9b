package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestFormsOfYAMLAndJSONThatAreRead(t *testing.T) {
	t.Parallel()
	inline := func(s string) string { return with(`"#cloud-config\n"`, s) }
	for name, row := range map[string]struct {
		text string
		want func(fleet.Spec) any
		is   any
	}{
		"line ends of Windows":           {strings.ReplaceAll(inline("|\n      a\n      b"), "\n", "\r\n"), cloudInit, "a\nb\n"},
		"byte order mark":                {"\ufeff" + good, cloudInit, "#cloud-config\n"},
		"directive":                      {"%YAML 1.2\n---" + good, cloudInit, "#cloud-config\n"},
		"comments and empty documents":   {"# a\n---\n---\n# b\n---" + good + "---\n# c\n...\n", cloudInit, "#cloud-config\n"},
		"block text keeps what is in it": {inline("|\n      #cloud-config\n      a: [\n       --- not a marker\n      # no comment"), cloudInit, "#cloud-config\na: [\n --- not a marker\n# no comment\n"},
		"text that is no number":         {inline("!!str 5"), cloudInit, "5"},
		"alias":                          {with("zone: us-east1-b", "zone: &z us-east1-b, zones: [*z]"), zones, []string{"us-east1-b"}},
		"merge key":                      {with("placement: {region: us-east1, zone: us-east1-b", "placement: {<<: {zones: [us-east1-c], region: us-west1}, region: us-east1"), zones, []string{"us-east1-c"}},
		"JSON with tabs": {"{\n\t\"apiVersion\": \"crawl.example.com/v1alpha1\",\n\t\"kind\": \"Proxy\",\n\t\"metadata\": {\n\t\t\"name\": \"a\"\n\t},\n" +
			"\t\"spec\": {\n\t\t\"mode\": \"Managed\", \"provider\": \"p\",\n\t\t\"cloudInit\": {\"inline\": \"a\\/b\\ud83d\\ude00\\u00e9\\t\\\\\\\"\"}\n\t}\n}\n", cloudInit, "a/b😀é\t\\\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items, err := Read("a.yaml", []byte(row.text))
			require.NoError(t, err)
			require.Len(t, items, 1)
			assert.Equal(t, row.is, row.want(items[0].Proxy.Spec))
		})
	}
}

func cloudInit(s fleet.Spec) any { return s.CloudInit.Inline }

func zones(s fleet.Spec) any { return s.Placement.Zones }

func TestADocumentThatIsNoYAMLHidesNoFaultOfTheOthers(t *testing.T) {
	t.Parallel()
	text := "spec: {mode: External\n---" + with("provider: gce-main", "provider: gce-main\n  extra: 1") + "---\n- [\n---\na: 1\na: 2\n"
	_, err := Read("a.yaml", []byte(text))
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		"a.yaml:1: is not YAML: could not find flow mapping end token '}'",
		"a.yaml:11: us-east1-a: spec.extra: unknown key",
		"a.yaml:17: is not YAML: sequence end token ']' not found",
		`a.yaml:20: is not YAML: mapping key "a" stands in line 19 already`,
	}, "\n"), err.Error())
}

func TestAMarkerEndsADocumentEvenInQuotes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want []chunk
	}{
		"one document":            {"a\nb", []chunk{{"a\nb", 0}}},
		"two":                     {"a\n---\nb\n", []chunk{{"a\n", 0}, {"---\nb\n", 1}}},
		"a marker first":          {"---\na\n", []chunk{{"", 0}, {"---\na\n", 0}}},
		"content behind it":       {"--- {a: b}\n", []chunk{{"", 0}, {"--- {a: b}\n", 0}}},
		"an end":                  {"a\n...\nb\n", []chunk{{"a\n", 0}, {"b\n", 2}}},
		"dashes that are none":    {"a\n----\n ---\n--- \n", []chunk{{"a\n----\n ---\n", 0}, {"--- \n", 3}}},
		"a directive is the head": {"%YAML 1.2\n# c\n---\na\n", []chunk{{"%YAML 1.2\n# c\n---\na\n", 0}}},
		"a directive in a text":   {"a: |\n%b\n---\nc\n", []chunk{{"a: |\n%b\n", 0}, {"---\nc\n", 2}}},
		"line ends of Windows":    {"a\r\n---\r\nb", []chunk{{"a\r\n", 0}, {"---\r\nb", 1}}},
		"in quotes":               {"a: \"x\n---\ny\"", []chunk{{"a: \"x\n", 0}, {"---\ny\"", 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, row.want, split([]byte(row.text)))
		})
	}
}

func TestLinesAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	text := "# comment\n---" + good + "---" + with("provider: gce-main", "provider: gce-main\n  extra: 1")
	_, err := Read("a.yaml", []byte(text))
	require.ErrorContains(t, err, "a.yaml:24: us-east1-a: spec.extra: unknown key")
	require.ErrorContains(t, err, "a.yaml:16: us-east1-a: metadata.name: must be unique: a.yaml:3 has it, too")
}

// What a few lines stand for must not be more than a machine can hold.
func TestManifestsThatExplodeAreRefusedQuickly(t *testing.T) {
	t.Parallel()
	lists, maps, merges := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n", "a0: &a0 {a: 1, b: 1, c: 1}\n", "a0: &a0 {k0: 1}\n"
	for i := 1; i < 30; i++ {
		lists += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
		maps += fmt.Sprintf("a%d: &a%d {a: *a%d, b: *a%d, c: *a%d}\n", i, i, i-1, i-1, i-1)
		merges += fmt.Sprintf("a%d: &a%d\n  <<: [*a%d, *a%d]\n  k%d: 1\n", i, i, i-1, i-1, i)
	}
	var keys, blocks strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	for i := range 1400 {
		blocks.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	const n = 60_000
	for name, row := range map[string]struct{ text, want string }{
		"aliases of lists":      {lists, "a.yaml:1: has more than 10000 values, its aliases written out"},
		"aliases of objects":    {maps, "a.yaml:1: has more than 10000 values, its aliases written out"},
		"merged aliases":        {merges, "a.yaml:1: has more than 10000 values, its aliases written out"},
		"an alias of itself":    {"a: &a [*a, *a]\n", "unknown key"},
		"brackets":              {strings.Repeat("[", n), "is nested deeper than 100 levels"},
		"braces":                {strings.Repeat("{a: ", n/4), "is nested deeper than 100 levels"},
		"lists in one line":     {strings.Repeat("- ", n/2), "is nested deeper than 100 levels"},
		"keys in one line":      {strings.Repeat("? ", n/2), "is nested deeper than 100 levels"},
		"anchors":               {strings.Repeat("&a ", n/3), "is nested deeper than 100 levels"},
		"tags":                  {strings.Repeat("!!str ", n/6), "is nested deeper than 100 levels"},
		"objects, line by line": {blocks.String(), "a: unknown key"},
		"keys":                  {keys.String(), "has more than 20000 words and marks"},
		"a document":            {strings.Repeat("# c\n", 300_000), "a.yaml:1: is larger than 1024 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			items, err := Read("a.yaml", []byte(row.text))
			require.ErrorContains(t, err, row.want)
			assert.Empty(t, items)
			assert.Less(t, time.Since(start), time.Minute, "even on a busy machine")
		})
	}
}

func TestAManifestOfManyProxiesIsRead(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 500 {
		text.WriteString("---" + with("us-east1-a", fmt.Sprint("proxy-", i)))
	}
	items, err := Read("a.yaml", []byte(text.String()))
	require.NoError(t, err)
	require.Len(t, items, 500)
	assert.Equal(t, "proxy-499", items[499].Name)
}

func TestWhatIsPrintedCanBeAppliedAgain(t *testing.T) {
	t.Parallel()
	items, err := Read("a.yaml", []byte(good))
	require.NoError(t, err)
	p := items[0].Proxy
	p.Labels = map[string]string{"a": "1", "b": "true", "c": "null", "d": "2030-01-01", "e": "1e3", "f": "0x1F", "g": "", "h": "yes", "i": "1.50", "j": "0o17"}
	p.Spec.CloudInit.Inline = "#cloud-config\n# a: b\n\ttab: \"x\"\n---\ntrailing  \n\n"
	p.CreateTime, p.UpdateTime, p.DeleteTime, p.RotateTime = time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0), time.Unix(4, 0)
	p.Status.UID = "u"
	p.Status.AddEvent(time.Unix(5, 0), "Created", "a: b")
	p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionReady, Reason: "Pending"}, time.Unix(6, 0))
	data, err := json.Marshal(fleet.DocumentOf(p))
	require.NoError(t, err)
	asYAML, err := yaml.JSONToYAML(data)
	require.NoError(t, err)
	for form, text := range map[string][]byte{"JSON": data, "YAML": asYAML} {
		items, err := Read("a", text)
		require.NoError(t, err, form)
		assert.Equal(t, p.Labels, items[0].Labels, form)
		assert.Equal(t, p.Spec, items[0].Proxy.Spec, form)
		again, faults := fleet.Decode(items[0].Spec)
		assert.Empty(t, faults)
		assert.Equal(t, p.Spec, again, form)
	}
}

// What a manifest says goes into stores as it is: they know these types and no others.
func TestTheRawSpecIsMadeOfWhatStoresKeep(t *testing.T) {
	t.Parallel()
	items, err := Read("a.yaml", []byte(with("provider: gce-main", "provider: gce-main\n  maxLeases: 5\n  endpoint: {port: 0x50}\n  paused: true\n  healthCheck: {intervalSeconds: 60.0, url:}")))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"mode": "Managed", "provider": "gce-main", "maxLeases": int64(5), "endpoint": map[string]any{"port": int64(80)}, "paused": true,
		"healthCheck": map[string]any{"intervalSeconds": 60.0, "url": nil},
		"placement":   map[string]any{"region": "us-east1", "zone": "us-east1-b", "machineType": "e2-micro"},
		"cloudInit":   map[string]any{"inline": "#cloud-config\n"},
		"lifecycle":   map[string]any{"drainTimeout": "5m", "maxAge": int64(0)},
	}, items[0].Spec)
}

func TestDocumentsWithoutNameAreNotOfTheSameName(t *testing.T) {
	t.Parallel()
	nameless := with("  name: us-east1-a\n", "")
	_, err := Read("a.yaml", []byte(nameless+"---"+nameless))
	require.EqualError(t, err, "a.yaml:4: metadata.name: must be set\na.yaml:16: metadata.name: must be set")
}
