package fleet

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxShown is the length in bytes above which a value is left out of a fault.
const maxShown = 80

// ShowValue writes a value of a manifest as people wrote it, for Fault.Value. It is empty for what is
// long, is no scalar, or may be a credential: "user:password", alone or within a URL.
func ShowValue(v any) string {
	switch v := v.(type) {
	case string:
		return show(quote(v))
	case bool, int, int32, int64, uint64, float64, json.Number:
		return show(fmt.Sprint(v))
	}
	return ""
}

func show(text string) string {
	if len(text) > maxShown || strings.ContainsAny(text, ":@") {
		return ""
	}
	return text
}

func quote(s string) string { return strconv.Quote(s) }

// optional quotes what is there; nothing stays nothing.
func optional(s string) string {
	if s == "" {
		return ""
	}
	return quote(s)
}

// PrintableKey makes a key fit for a field path: on one line, in text, of bounded length, and without what
// may be a credential.
func PrintableKey(key string) string {
	switch {
	case strings.ContainsAny(key, ":@"):
		return "(key)"
	case key == "" || len(key) > maxShown || !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return !strconv.IsPrint(r) || r == ' ' }):
		return strconv.QuoteToASCII(key[:min(len(key), maxShown/2)])
	}
	return key
}
