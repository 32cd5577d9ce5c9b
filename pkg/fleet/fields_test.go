package fleet

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every whole number of a spec has a range, and only they have.
func TestEveryNumberHasARange(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	numbers("spec", reflect.TypeFor[Spec](), found)
	var have []string
	for _, l := range limits() {
		have = append(have, l.path)
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(found)), have)
}

func numbers(path string, t reflect.Type, found map[string]bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int32:
		found[path] = true
	case reflect.Struct:
		for key, i := range fieldsOf(t) {
			numbers(path+"."+key, t.Field(i).Type, found)
		}
	}
}

// A field of a kind that the decoder does not know would be left out in silence.
func TestTheDecoderKnowsEveryKindOfField(t *testing.T) {
	t.Parallel()
	for path, v := range leaves("spec", Encode(whole())) {
		raw := map[string]any{}
		at := raw
		keys := strings.Split(strings.TrimPrefix(path, "spec."), ".")
		for _, k := range keys[:len(keys)-1] {
			next := map[string]any{}
			at[k], at = next, next
		}
		at[keys[len(keys)-1]] = v
		s, faults := Decode(raw)
		assert.Empty(t, faults, path)
		encoded := Encode(s)
		delete(encoded, "mode")
		if path == "spec.mode" {
			encoded["mode"] = v
		}
		if got := leaves("spec", encoded); assert.Contains(t, got, path) {
			assert.Equal(t, v, got[path], path)
		}
	}
}

func leaves(path string, v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		return map[string]any{path: v}
	}
	out := map[string]any{}
	for k, x := range m {
		maps.Copy(out, leaves(path+"."+k, x))
	}
	return out
}
