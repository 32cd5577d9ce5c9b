package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	listed  = `{"apiVersion": "crawl.example.com/v1alpha1", "kind": "Proxy", "metadata": {"name": "a"}, "spec": {"mode": "External", "endpoint": {"host": "h.example"}}}`
	listedB = `{"apiVersion": "crawl.example.com/v1alpha1", "kind": "Proxy", "metadata": {"name": "b"},
  "spec": {"mode": "External",
  "endpoint": {"host": "h.example", "port": 70000}}}`
)

func TestAJSONListIsReadElementByElement(t *testing.T) {
	t.Parallel()
	items, err := Read("fleet.json", []byte("\ufeff \n["+listed+",\n"+strings.Replace(listed, `"a"`, `"b"`, 1)+"\n]\n"))
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Equal(t, "a", items[0].Name)
	require.Equal(t, 2, items[0].Line)
	require.Equal(t, "b", items[1].Name)
	require.Equal(t, 3, items[1].Line)
}

func TestAJSONListMayBeLongerThanADocument(t *testing.T) {
	t.Parallel()
	var docs []string
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		docs = append(docs, strings.Replace(listed, `"a"`, `"`+string(c)+`", "labels": {"l": "`+strings.Repeat("x", 60)+`"}`, 1))
	}
	text := "[" + strings.Join(docs, "\n,\n"+strings.Repeat(" ", maxDocument/20)) + "]"
	require.Greater(t, len(text), maxDocument)
	items, err := Read("fleet.json", []byte(text))
	require.NoError(t, err)
	require.Len(t, items, 26)
}

func TestFaultsInAJSONListHaveTheirLines(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"a field":              {"[\n" + listed + ",\n" + listedB + "]", "f.json:5: b: spec.endpoint.port: 70000: must be between 1 and 65535"},
		"an element":           {"[\n" + listed + ",\n7]", "f.json:3: must be an object with apiVersion, kind, metadata and spec"},
		"a name twice":         {"[" + listed + ",\n" + listed + "]", "f.json:2: a: metadata.name: must be unique: f.json:1 has it, too"},
		"a comma too many":     {"[\n" + listed + ",\n]", "f.json:2: is not a JSON list of documents: invalid character ']' looking for beginning of value"},
		"it breaks off":        {"[" + listed + ",\n{\"a\":", "f.json:2: is not a JSON list of documents: it breaks off"},
		"the end is missing":   {"[" + listed + "\n", "f.json:2: is not a JSON list of documents: it breaks off"},
		"something follows it": {"[" + listed + "]\nx", "f.json:1: is not a JSON list of documents: 1 bytes follow it"},
		"nothing is in it":     {"[]\n", "f.json: is empty; it should hold Proxy documents"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read("f.json", []byte(row.text))
			require.EqualError(t, err, row.want)
		})
	}
}
