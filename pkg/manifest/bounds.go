package manifest

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxBytes is how large a manifest may be; it holds several documents.
	maxBytes = 16 << 20
	// maxDocument is how large one document may be, in bytes; Firestore takes 1 MiB.
	maxDocument = 1 << 20
	// maxDepth is how deep objects and lists may stand in each other. A Proxy has four levels; the
	// parser's effort grows with the square of the depth.
	maxDepth = 100
	// maxTokens is how many words and marks a document may have; the parser's effort grows with the
	// square of the keys of an object. A Proxy has some hundred.
	maxTokens = 20_000
	// maxValues is how many values a document may have once its aliases are resolved: a few lines can
	// stand for billions. A Proxy has some hundred.
	maxValues = 10_000
)

// located is a complaint about one line of a document, counted from its beginning.
type located struct {
	line    int
	message string
}

func (l located) Error() string { return l.message }

// checkTokens looks at tokens, before anything recurses into them. Outside of brackets, levels that
// share a line are counted; those that do not cost an ever longer indentation, which bounds them.
// Tags are refused where they could change what a value is: with !!int, any word is 0.
func checkTokens(tokens token.Tokens) error {
	line, inLine, brackets := 0, 0, 0
	for i, t := range tokens {
		if t.Position.Line != line {
			line, inLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType:
			inLine++
		case token.TagType:
			if t.Value != "!!str" {
				return located{line, "must have no tags, such as !!int or !name, but for !!str"}
			}
			inLine++
		}
		if brackets > maxDepth || inLine > maxDepth {
			return located{line, fmt.Sprintf("is nested deeper than %d levels", maxDepth)}
		}
		if i >= maxTokens {
			return located{line, fmt.Sprintf("has more than %d words and marks", maxTokens)}
		}
	}
	return nil
}

// checkSize counts the values of a document as if its aliases were written out.
func checkSize(body ast.Node) error {
	s := sizes{anchors: map[string]int{}}
	if s.of(body) > maxValues {
		return located{lineOf(body), fmt.Sprintf("has more than %d values, its aliases written out", maxValues)}
	}
	return nil
}

type sizes struct{ anchors map[string]int }

// of returns the size of a node; what is above the bound is not counted on.
func (s sizes) of(n ast.Node) int {
	switch n := n.(type) {
	case *ast.AnchorNode:
		size := s.of(n.Value)
		s.anchors[n.Name.GetToken().Value] = size
		return size
	case *ast.AliasNode:
		return 1 + s.anchors[n.Value.GetToken().Value]
	case *ast.TagNode:
		return s.of(n.Value)
	case *ast.MappingNode:
		size := 1
		for _, v := range n.Values {
			size = min(size+s.of(v), maxValues+1)
		}
		return size
	case *ast.MappingValueNode:
		return min(1+s.of(n.Key)+s.of(n.Value), maxValues+1)
	case *ast.MappingKeyNode:
		return s.of(n.Value)
	case *ast.SequenceNode:
		size := 1
		for _, v := range n.Values {
			size = min(size+s.of(v), maxValues+1)
		}
		return size
	}
	return 1
}
