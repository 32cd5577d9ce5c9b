package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// document is one YAML document, with the lines that its keys are on.
type document struct {
	source string
	line   int
	value  map[string]any
	lines  lines
}

// parse splits a manifest into documents; JSON is YAML, too, but for a list of documents. Each document is parsed on its own, so
// that one which is no YAML hides no fault of the others.
func parse(source string, data []byte) ([]document, Faults) {
	fault := func(line int, message string) Faults {
		return Faults{{Source: source, Line: line, Fault: fleet.Fault{Message: message}}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxBytes {
		return nil, fault(0, fmt.Sprintf("is larger than %d MiB", maxBytes>>20))
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, fault(1+bytes.Count(data[:i], []byte("\n")), "is not UTF-8 text; save the file as UTF-8")
	}
	var docs []document
	var faults Faults
	var chunks []chunk
	if isList(data) {
		var err error
		if chunks, err = elements(data); err != nil {
			faults = fault(complaint(0, err))
		}
	} else {
		chunks = split(data)
	}
	for _, c := range chunks {
		doc, err := c.document(source)
		if err != nil {
			faults = append(faults, fault(complaint(c.line, err))...)
		} else if doc.value != nil {
			docs = append(docs, doc)
		}
	}
	if len(docs) == 0 && len(faults) == 0 {
		return nil, fault(0, "is empty; it should hold Proxy documents")
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

// document reads one document; its value is nil when there are only comments.
func (c chunk) document(source string) (d document, err error) {
	defer func() {
		if recover() != nil { // a manifest must not end the program that reads it
			err = located{1, "is not YAML: it cannot be parsed"}
		}
	}()
	body, err := c.parse()
	if body == nil || err != nil {
		return document{}, err
	}
	var value any
	if err := yaml.NodeToValue(body, &value); err != nil {
		return document{}, err
	}
	line := lineOf(firstKey(body))
	m, ok := plain(value).(map[string]any)
	if !ok {
		return document{}, located{line, "must be an object with apiVersion, kind, metadata and spec"}
	}
	d = document{source: source, line: c.line + line, value: m, lines: lines{}}
	d.lines.note("", body, c.line, 0)
	return d, nil
}

// parse returns the document's content, nil when there is none.
func (c chunk) parse() (ast.Node, error) {
	if len(c.text) > maxDocument {
		return nil, located{1, fmt.Sprintf("is larger than %d KiB: no database takes such a document", maxDocument>>10)}
	}
	tokens := lexer.Tokenize(c.text)
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType && d.Body.Type() != ast.NullType && d.Body.Type() != ast.DirectiveType {
			return d.Body, checkSize(d.Body)
		}
	}
	return nil, nil
}

var (
	keyTwice = regexp.MustCompile(`^(mapping key ".*") already defined at \[(\d+):\d+\]$`)
	quoted   = regexp.MustCompile(`(?s):? ?"[^"]*"?`)
)

// complaint is what is wrong with a document that begins behind the given number of lines, and where;
// without the excerpt that the parser adds and without what it quotes: that may be a secret.
func complaint(before int, err error) (line int, message string) {
	var l located
	if errors.As(err, &l) {
		return before + l.line, l.message
	}
	var y yaml.Error
	if !errors.As(err, &y) {
		return before + 1, "is not YAML: it cannot be parsed"
	}
	line = before + 1
	if tk := y.GetToken(); tk != nil && tk.Position != nil {
		line = before + tk.Position.Line
	}
	if m := keyTwice.FindStringSubmatch(y.GetMessage()); m != nil {
		first, _ := strconv.Atoi(m[2])
		return line, fmt.Sprintf("is not YAML: %s stands in line %d already", m[1], before+first)
	}
	return line, "is not YAML: " + quoted.ReplaceAllString(y.GetMessage(), "")
}

// plain turns the decoder's integers into int64, which every store keeps, where they fit.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
	case uint64:
		if v <= 1<<63-1 {
			return int64(v)
		}
	}
	return v
}
