package manifest

import (
	"bytes"
	"strings"
)

// chunk is the text of one document; line is how many lines stand before it.
type chunk struct {
	text string
	line int
}

// split cuts a manifest at its lines "---" and "...". At the beginning of a line they end a document
// wherever they stand, within quotes and block texts as well: YAML has it so.
func split(data []byte) []chunk {
	var out []chunk
	var text strings.Builder
	start, n := 0, 0
	for line := range bytes.Lines(data) {
		if isMarker(line, "---") && !onlyDirectives(text.String()) || isMarker(line, "...") {
			out = append(out, chunk{text.String(), start})
			text.Reset()
			start = n
		}
		if isMarker(line, "...") {
			start, line = n+1, nil
		}
		text.Write(line)
		n++
	}
	return append(out, chunk{text.String(), start})
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// onlyDirectives reports whether text is the head of the document that begins next, such as "%YAML 1.2".
func onlyDirectives(text string) bool {
	directive := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "%"):
			directive = true
		case line != "" && !strings.HasPrefix(line, "#"):
			return false
		}
	}
	return directive
}
