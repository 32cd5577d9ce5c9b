package manifest

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// lines are the lines of a manifest by field path.
type lines map[string]int

// of returns the line of a field, or of the nearest field around it; 0 when there is none.
func (l lines) of(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}

// note remembers the line of every key and element below n; before is how many lines stand before
// the document.
func (l lines) note(path string, n ast.Node, before, depth int) {
	if depth > maxDepth {
		return
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		l.note(path, n.Value, before, depth)
	case *ast.TagNode:
		l.note(path, n.Value, before, depth)
	case *ast.MappingNode:
		for _, v := range n.Values {
			l.note(path, v, before, depth)
		}
	case *ast.MappingValueNode:
		key := strings.TrimPrefix(path+"."+n.Key.GetToken().Value, ".")
		l[key] = before + lineOf(n.Key)
		l.note(key, n.Value, before, depth+1)
	case *ast.SequenceNode:
		for i, v := range n.Values {
			item := fmt.Sprintf("%s[%d]", path, i)
			l[item] = before + lineOf(v)
			l.note(item, v, before, depth+1)
		}
	}
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// firstKey returns the first key of an object, anything else as it is: an object's own token is a
// colon or a bracket.
func firstKey(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		return firstKey(n.Value)
	case *ast.TagNode:
		return firstKey(n.Value)
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return n.Values[0].Key
		}
	case *ast.MappingValueNode:
		return n.Key
	}
	return n
}
