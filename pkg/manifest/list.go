package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// isList reports whether a manifest is a JSON list of documents, as `get -o json` prints them.
func isList(data []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("["))
	rest = bytes.TrimSpace(rest)
	return ok && (bytes.HasPrefix(rest, []byte("{")) || bytes.HasPrefix(rest, []byte("]")))
}

// elements cuts a JSON list into its documents, up to where it breaks off.
func elements(data []byte) (out []chunk, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	linesBefore := func(offset int64) int { return bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")) }
	complain := func(offset int64, what string) error {
		return located{1 + linesBefore(offset), "is not a JSON list of documents: " + what}
	}
	_, _ = dec.Token() // the bracket
	for dec.More() {
		var text json.RawMessage
		if err := dec.Decode(&text); err != nil {
			var wrong *json.SyntaxError
			if errors.As(err, &wrong) {
				return out, complain(wrong.Offset, wrong.Error())
			}
			return out, complain(int64(len(data)), "it breaks off")
		}
		out = append(out, chunk{string(text), linesBefore(dec.InputOffset() - int64(len(text)))})
	}
	if _, err := dec.Token(); err != nil {
		return out, complain(int64(len(data)), "it breaks off")
	}
	if rest := bytes.TrimSpace(data[dec.InputOffset():]); len(rest) > 0 {
		return out, complain(dec.InputOffset(), fmt.Sprintf("%d bytes follow it", len(rest)))
	}
	return out, nil
}
