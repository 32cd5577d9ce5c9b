package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Decode reads a spec in the manifest's form, as Firestore, JSON and YAML decoders yield it. It is
// strict and reports all faults: unknown keys, wrong types, numbers out of range. What is at fault
// stays zero in the result, the rest is filled in.
func Decode(raw map[string]any) (Spec, Faults) {
	var s Spec
	d := decoder{}
	d.object("spec", raw, reflect.ValueOf(&s).Elem())
	return s, d.faults
}

// Encode returns a spec in the manifest's form; Decode reads it back.
func Encode(s Spec) map[string]any {
	data, err := json.Marshal(s)
	if err != nil {
		return map[string]any{} // no field of a Spec can fail to be marshalled
	}
	out := map[string]any{}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	_ = dec.Decode(&out)
	return integers(out).(map[string]any)
}

// integers turns json.Number into int64, which every store can keep.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case json.Number:
		n, _ := v.Int64()
		return n
	}
	return v
}

// decoder walks a value beside the type that it should have.
type decoder struct{ faults Faults }

func (d *decoder) fault(path string, value any, format string, args ...any) {
	text := ""
	if value != nil {
		text = show(value)
	}
	d.faults = append(d.faults, Fault{Path: path, Value: text, Message: fmt.Sprintf(format, args...)})
}

// show writes a short value as people would; long ones and anything below a secret stay out.
func show(v any) string {
	switch v.(type) {
	case map[string]any, []any, []byte:
		return ""
	}
	s := fmt.Sprint(v)
	if str, ok := v.(string); ok {
		s = strconv.Quote(str)
	}
	if len(s) > 80 {
		return ""
	}
	return s
}

func (d *decoder) object(path string, raw map[string]any, into reflect.Value) {
	fields := fieldsOf(into.Type())
	keys := make([]string, 0, len(raw))
	for k := range raw {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, key := range keys {
		i, known := fields[key]
		if !known {
			d.fault(path+"."+printable(key), nil, "unknown key%s", suggestion(key, fields))
			continue
		}
		d.value(path+"."+key, raw[key], into.Field(i))
	}
}

// fieldsOf returns the keys of a struct's manifest form and the fields that they fill.
func fieldsOf(t reflect.Type) map[string]int {
	out := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out[name] = i
	}
	return out
}

var durationType = reflect.TypeFor[Duration]()

func (d *decoder) value(path string, raw any, into reflect.Value) {
	if raw == nil { // a key without a value, as YAML has it, is a key left out
		return
	}
	if into.Kind() == reflect.Pointer {
		fresh := reflect.New(into.Type().Elem())
		before := len(d.faults)
		d.value(path, raw, fresh.Elem())
		if len(d.faults) == before || fresh.Elem().Kind() == reflect.Struct {
			into.Set(fresh)
		}
		return
	}
	if into.Type() == durationType {
		d.duration(path, raw, into)
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		m, ok := raw.(map[string]any)
		if !ok {
			d.fault(path, raw, "must be an object")
			return
		}
		d.object(path, m, into)
	case reflect.String:
		s, ok := raw.(string)
		if !ok {
			d.fault(path, raw, "must be a string")
		} else if !utf8.ValidString(s) {
			d.fault(path, nil, "must be UTF-8")
		} else {
			into.SetString(s)
		}
	case reflect.Bool:
		b, ok := raw.(bool)
		if !ok {
			d.fault(path, raw, "must be true or false")
			return
		}
		into.SetBool(b)
	case reflect.Int32:
		d.integer(path, raw, into)
	case reflect.Slice:
		d.list(path, raw, into)
	}
}

func (d *decoder) list(path string, raw any, into reflect.Value) {
	list, ok := raw.([]any)
	if !ok {
		d.fault(path, raw, "must be a list")
		return
	}
	out := reflect.MakeSlice(into.Type(), len(list), len(list))
	for i, v := range list {
		d.value(fmt.Sprintf("%s[%d]", path, i), v, out.Index(i))
	}
	into.Set(out)
}

func (d *decoder) integer(path string, raw any, into reflect.Value) {
	n, ok := wholeNumber(raw)
	switch {
	case !ok:
		d.fault(path, raw, "must be a whole number")
	case n < math.MinInt32 || n > math.MaxInt32:
		d.fault(path, raw, "must be between %d and %d", math.MinInt32, math.MaxInt32)
	default:
		into.SetInt(n)
	}
}

// wholeNumber takes the number types of JSON, YAML and Firestore; anything too large is the largest.
func wholeNumber(raw any) (int64, bool) {
	switch n := raw.(type) {
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case uint64:
		return int64(min(n, math.MaxInt64)), true
	case float64:
		if n != math.Trunc(n) || math.IsInf(n, 0) {
			return 0, false
		}
		return int64(max(min(n, 1e15), -1e15)), true
	case json.Number:
		if i, err := n.Int64(); err == nil {
			return i, true
		}
		f, err := n.Float64()
		if err != nil {
			return 0, false
		}
		return wholeNumber(f)
	}
	return 0, false
}

func (d *decoder) duration(path string, raw any, into reflect.Value) {
	const must = "must be a duration such as 10m, or 0"
	if n, ok := wholeNumber(raw); ok && n == 0 {
		into.SetInt(0)
		return
	}
	s, ok := raw.(string)
	if !ok {
		d.fault(path, raw, must)
		return
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		d.fault(path, raw, must)
		return
	}
	into.SetInt(int64(v))
}

// printable keeps keys that are not text out of messages.
func printable(key string) string {
	if !utf8.ValidString(key) || len(key) > 80 {
		return strconv.QuoteToASCII(key[:min(len(key), 40)])
	}
	return key
}

// suggestion names the known key that was probably meant.
func suggestion(key string, fields map[string]int) string {
	best, distance := "", 3
	for known := range fields {
		if n := editDistance(strings.ToLower(key), strings.ToLower(known)); n < distance || n == distance && known < best {
			best, distance = known, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance counts the insertions, deletions and replacements between two short keys.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			previous, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, previous+cost)
		}
	}
	return row[len(b)]
}
