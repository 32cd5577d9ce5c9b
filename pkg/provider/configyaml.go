package provider

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// entries parses a providers file as far as its list. Repeated keys are let through: the decoder
// reports them together with all other faults.
func entries(data []byte) ([]ast.Node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, ConfigFaults{{Line: badLine(data), Message: "is not UTF-8 text; save the file as UTF-8"}}
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, ConfigFaults{syntaxFault(err)}
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		return nil, ConfigFaults{{Message: "is empty; write a list of providers, [] for none"}}
	case len(bodies) > 1:
		return nil, ConfigFaults{{Line: lineOf(bodies[1]), Message: "a second document begins here; keep all providers in one list"}}
	}
	list, ok := unwrap(bodies[0]).(*ast.SequenceNode)
	if !ok {
		return nil, ConfigFaults{{Line: lineOf(bodies[0]), Message: "must be a list: each provider begins with `- name:`"}}
	}
	return list.Values, nil
}

// badLine returns the line of the first byte that is not UTF-8.
func badLine(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line
}

// syntaxFault is the parser's complaint without the excerpt of the file that it quotes: that may hold
// a password.
func syntaxFault(err error) ConfigFault {
	f := ConfigFault{Message: "is not YAML"}
	var y yaml.Error
	if errors.As(err, &y) {
		f.Message += ": " + y.GetMessage()
		if tk := y.GetToken(); tk != nil && tk.Position != nil {
			f.Line = tk.Position.Line
		}
	}
	return f
}

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	line  int
	value ast.Node
}

// pairsOf returns what node holds as a mapping; ok is false when it is none. A key that is written
// without a value comes with a NullNode.
func pairsOf(node ast.Node) (pairs []pair, ok bool) {
	var values []*ast.MappingValueNode
	switch n := unwrap(node).(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, false
	}
	for _, v := range values {
		tk := v.Key.GetToken()
		pairs = append(pairs, pair{key: tk.Value, line: tk.Position.Line, value: v.Value})
	}
	return pairs, true
}

// unwrap removes the name that an anchor gives to a node.
func unwrap(node ast.Node) ast.Node {
	if a, ok := node.(*ast.AnchorNode); ok {
		return a.Value
	}
	return node
}

func lineOf(node ast.Node) int {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position.Line
	}
	if tk := node.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}

// find returns the pair at a path below the entry, the first one where the key is repeated; ok is
// false when there is none.
func (c Config) find(path string) (found pair, ok bool) {
	node := c.entry
	for key := range strings.SplitSeq(path, ".") {
		pairs, _ := pairsOf(node)
		i := slices.IndexFunc(pairs, func(p pair) bool { return p.key == key })
		if i < 0 {
			return pair{}, false
		}
		found, node = pairs[i], pairs[i].value
	}
	return found, true
}

// unreadable reports whether key was written in a way that is a fault already: the entry is no
// mapping, or the value no string.
func (c Config) unreadable(key string) bool {
	if c.entry == nil {
		return false
	}
	if _, ok := pairsOf(c.entry); !ok {
		return true
	}
	p, ok := c.find(key)
	if !ok {
		return false
	}
	_, ok = textOf(p.value)
	return !ok
}

// textOf returns the string that node is.
func textOf(node ast.Node) (text string, ok bool) {
	switch n := unwrap(node).(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}
