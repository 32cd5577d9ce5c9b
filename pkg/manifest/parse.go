package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// maxBytes is how large a manifest may be; Firestore takes no document above 1 MiB, and files hold
// several.
const maxBytes = 16 << 20

// document is one YAML document, with the lines that its keys are on.
type document struct {
	source string
	line   int
	value  map[string]any
	lines  map[string]int // by field path
}

// lineOf returns the line of a field or of the nearest field around it.
func (d document) lineOf(path string) int {
	for path != "" {
		if line, ok := d.lines[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.line
}

// parse splits a manifest into documents; JSON is YAML, too.
func parse(source string, data []byte) ([]document, Faults) {
	fail := func(line int, format string, args ...any) ([]document, Faults) {
		return nil, Faults{{Source: source, Line: line, Fault: fleet.Fault{Message: fmt.Sprintf(format, args...)}}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxBytes {
		return fail(0, "is larger than %d MiB", maxBytes>>20)
	}
	if i := invalidUTF8(data); i >= 0 {
		return fail(1+bytes.Count(data[:i], []byte("\n")), "is not UTF-8 text; save the file as UTF-8")
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		line, message := syntax(err)
		return fail(line, "is not YAML: %s", message)
	}
	var docs []document
	var faults Faults
	for _, d := range file.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType || d.Body.Type() == ast.NullType {
			continue
		}
		doc, err := convert(source, d.Body)
		if err != nil {
			faults = append(faults, Fault{Source: source, Line: d.Body.GetToken().Position.Line, Fault: fleet.Fault{Message: err.Error()}})
			continue
		}
		docs = append(docs, doc)
	}
	if len(docs) == 0 && len(faults) == 0 {
		return fail(0, "is empty; it should hold Proxy documents")
	}
	return docs, faults
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// syntax is the parser's complaint without the excerpt of the file, which may hold a secret.
func syntax(err error) (line int, message string) {
	var y yaml.Error
	if !errors.As(err, &y) {
		return 0, "it cannot be parsed"
	}
	if tk := y.GetToken(); tk != nil && tk.Position != nil {
		line = tk.Position.Line
	}
	return line, y.GetMessage()
}

func convert(source string, body ast.Node) (document, error) {
	d := document{source: source, line: body.GetToken().Position.Line, lines: map[string]int{}}
	mapping(body, func(first *ast.MappingValueNode) {
		d.line = first.Key.GetToken().Position.Line
	})
	var value any
	if err := yaml.NodeToValue(body, &value); err != nil {
		_, message := syntax(err)
		return d, errors.New("is not YAML: " + message)
	}
	m, ok := plain(value).(map[string]any)
	if !ok {
		return d, errors.New("must be an object with apiVersion, kind, metadata and spec")
	}
	d.value = m
	d.note("", body, 0)
	return d, nil
}

func mapping(n ast.Node, first func(*ast.MappingValueNode)) {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			first(n.Values[0])
		}
	case *ast.MappingValueNode:
		first(n)
	}
}

// maxDepth bounds how deep lines are noted; no field of a Proxy is deeper.
const maxDepth = 12

// note remembers the line of every key below n.
func (d document) note(path string, n ast.Node, depth int) {
	if depth > maxDepth {
		return
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		d.note(path, n.Value, depth)
	case *ast.TagNode:
		d.note(path, n.Value, depth)
	case *ast.MappingNode:
		for _, v := range n.Values {
			d.note(path, v, depth)
		}
	case *ast.MappingValueNode:
		key := strings.TrimPrefix(path+"."+n.Key.GetToken().Value, ".")
		d.lines[key] = n.Key.GetToken().Position.Line
		if bare, ok := strings.CutPrefix(key, "metadata.labels"); !ok || bare == "" {
			d.note(key, n.Value, depth+1)
		}
	case *ast.SequenceNode:
		for i, v := range n.Values {
			item := fmt.Sprintf("%s[%d]", path, i)
			d.lines[item] = v.GetToken().Position.Line
			d.note(item, v, depth+1)
		}
	}
}

// plain turns the decoder's values into those of JSON: string keys, no typed maps.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
		return v
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[fmt.Sprint(k)] = plain(x)
		}
		return out
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
		return v
	case uint64:
		if v <= 1<<63-1 {
			return int64(v)
		}
	}
	return v
}
