package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxBody is how large a request may be, in bytes.
const maxBody = 64 << 10

// body is a request's JSON object, read strictly: each key once, no key that nobody reads, nothing
// behind it.
type body struct {
	values map[string]json.RawMessage
	err    *Error // the first fault
}

// readBody reads a request's body; an empty one is an empty object.
func readBody(r *http.Request) *body {
	b := &body{values: map[string]json.RawMessage{}}
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		b.err = invalid("body", "could not be read whole")
	case len(data) > maxBody:
		b.err = invalid("body", "must be at most %d bytes", maxBody)
	case !utf8.Valid(data):
		b.err = invalid("body", "must be UTF-8")
	case len(bytes.TrimSpace(data)) > 0:
		b.parse(data)
	}
	return b
}

func (b *body) parse(data []byte) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		b.err = invalid("body", "must be a JSON object")
		return
	}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			b.err = invalid("body", "must be a JSON object")
			return
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			b.err = invalid(printable(key), "must be JSON")
			return
		}
		if _, twice := b.values[key]; twice {
			b.err = invalid(printable(key), "must be given once")
			return
		}
		b.values[key] = value
	}
	if _, err := dec.Token(); err != nil {
		b.err = invalid("body", "must be a whole JSON object")
		return
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		b.err = invalid("body", "must end after the JSON object")
	}
}

func printable(key string) string {
	if len(key) > 60 {
		key = key[:60]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return '?'
		}
		return r
	}, key)
}

// take returns a key's value, nil when it is not given or null, and marks it as read.
func (b *body) take(key string) json.RawMessage {
	value, ok := b.values[key]
	delete(b.values, key)
	if !ok || string(value) == "null" {
		return nil
	}
	return value
}

func (b *body) fail(e *Error) {
	if b.err == nil {
		b.err = e
	}
}

// done returns the first fault; keys that nobody read are one.
func (b *body) done(known string) error {
	for _, key := range slices.Sorted(maps.Keys(b.values)) {
		b.fail(invalid(printable(key), "unknown field; known are %s", known))
	}
	if b.err != nil {
		return b.err
	}
	return nil
}

func (b *body) text(key string, most int, pattern *regexp.Regexp, must string) string {
	raw := b.take(key)
	if raw == nil {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		b.fail(invalid(key, "must be a string"))
		return ""
	}
	if len(s) > most {
		b.fail(invalid(key, "must be at most %d bytes", most))
	} else if pattern != nil && s != "" && !pattern.MatchString(s) {
		b.fail(invalid(key, "must be %s", must))
	}
	return s
}

// whole reads a whole number from low to high; missing is what it returns when it is not given.
func (b *body) whole(key string, low, high, missing int) int {
	raw := b.take(key)
	if raw == nil {
		return missing
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		b.fail(invalid(key, "must be a whole number between %d and %d", low, high))
		return missing
	}
	if math.IsInf(f, 0) || f != math.Trunc(f) || f < float64(low) || f > float64(high) {
		b.fail(invalid(key, "%s: must be a whole number between %d and %d", shorten(string(raw)), low, high))
		return missing
	}
	return int(f)
}

func shorten(s string) string { return s[:min(len(s), 24)] }

func (b *body) labels(key string) map[string]string {
	raw := b.take(key)
	if raw == nil {
		return nil
	}
	inner := &body{values: map[string]json.RawMessage{}}
	inner.parse(raw)
	labels := make(map[string]string, len(inner.values))
	for k, value := range inner.values {
		var s *string
		if json.Unmarshal(value, &s) != nil || s == nil {
			inner.fail(invalid(k, "must be a string"))
			break
		}
		labels[k] = *s
	}
	switch {
	case inner.err != nil && inner.err.Field != "body":
		b.fail(invalid(key, "%s", inner.err.Message))
	case inner.err != nil:
		b.fail(invalid(key, "must be an object of strings"))
	case len(labels) > maxList:
		b.fail(invalid(key, "must be at most %d", maxList))
	}
	return labels
}

func (b *body) list(key string) []string {
	raw := b.take(key)
	if raw == nil {
		return nil
	}
	var l []string
	if err := json.Unmarshal(raw, &l); err != nil {
		b.fail(invalid(key, "must be a list of strings"))
	} else if len(l) > maxList {
		b.fail(invalid(key, "must be at most %d", maxList))
	}
	return l
}
