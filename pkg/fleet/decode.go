package fleet

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Decode reads a spec in the manifest's form, as Firestore, JSON and YAML decoders yield it: integers
// may be of any number type. It is strict and reports all faults, by field path: unknown keys, wrong
// types, fractions, numbers that cannot be held, zeros where a number must be at least 1, text that is
// not UTF-8. What is at fault stays zero in the result, the rest is filled in; a key without a value
// counts as left out.
func Decode(raw map[string]any) (Spec, Faults) {
	var s Spec
	d := decoder{}
	d.object("spec", raw, reflect.ValueOf(&s).Elem())
	return s, d.faults
}

// DecodeLabels reads metadata.labels likewise. The result is never nil.
func DecodeLabels(raw any) (map[string]string, Faults) {
	labels := map[string]string{}
	d := decoder{}
	m, ok := raw.(map[string]any)
	if !ok && raw != nil {
		d.fault("metadata.labels", nil, "must be an object")
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		path := "metadata.labels." + PrintableKey(k)
		if s, ok := m[k].(string); !ok {
			d.fault(path, m[k], "must be a string: put it into quotes")
		} else if !utf8.ValidString(s) {
			d.fault(path, nil, "must be UTF-8")
		} else {
			labels[k] = s
		}
	}
	return labels, d.faults
}

// decoder walks a value beside the type that it should have.
type decoder struct {
	faults Faults
	secret bool // whether what is walked may hold secrets, so that no value is shown
}

func (d *decoder) fault(path string, value any, format string, args ...any) {
	f := Fault{Path: path, Message: fmt.Sprintf(format, args...)}
	if !d.secret {
		f.Value = ShowValue(value)
	}
	d.faults = append(d.faults, f)
}

func (d *decoder) object(path string, raw map[string]any, into reflect.Value) {
	fields := fieldsOf(into.Type())
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if i, known := fields[key]; known {
			d.value(path+"."+key, raw[key], into.Field(i))
		} else {
			d.fault(path+"."+PrintableKey(key), nil, "unknown key%s", suggestion(key, fields))
		}
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

var (
	durationType = reflect.TypeFor[Duration]()
	// secretTypes are the objects in and around which people put secrets by mistake.
	secretTypes = []reflect.Type{reflect.TypeFor[SecretRef](), reflect.TypeFor[CloudInit]()}
)

func (d *decoder) value(path string, raw any, into reflect.Value) {
	if raw == nil {
		return
	}
	if into.Kind() == reflect.Pointer {
		d.pointer(path, raw, into)
		return
	}
	if into.Type() == durationType {
		d.duration(path, raw, into)
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		d.structure(path, raw, into)
	case reflect.String:
		d.text(path, raw, into)
	case reflect.Bool:
		d.truth(path, raw, into)
	case reflect.Int32:
		d.integer(path, raw, into)
	case reflect.Slice:
		d.list(path, raw, into)
	}
}

// pointer sets what decodes. An object is set though something in it does not, so that its other
// fields are judged.
func (d *decoder) pointer(path string, raw any, into reflect.Value) {
	fresh := reflect.New(into.Type().Elem())
	before := len(d.faults)
	d.value(path, raw, fresh.Elem())
	if len(d.faults) == before || fresh.Elem().Kind() == reflect.Struct {
		into.Set(fresh)
	}
}

func (d *decoder) structure(path string, raw any, into reflect.Value) {
	outer := d.secret
	d.secret = outer || slices.Contains(secretTypes, into.Type())
	if m, ok := raw.(map[string]any); ok {
		d.object(path, m, into)
	} else {
		d.fault(path, raw, "must be an object")
	}
	d.secret = outer
}

func (d *decoder) text(path string, raw any, into reflect.Value) {
	if s, ok := raw.(string); !ok {
		d.fault(path, raw, "must be a string")
	} else if !utf8.ValidString(s) {
		d.fault(path, nil, "must be UTF-8")
	} else {
		into.SetString(s)
	}
}

func (d *decoder) truth(path string, raw any, into reflect.Value) {
	if b, ok := raw.(bool); ok {
		into.SetBool(b)
	} else {
		d.fault(path, raw, "must be true or false")
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

// integer leaves ranges to Validate, but for what an int32 cannot hold or, being 0, cannot tell from
// a number left out.
func (d *decoder) integer(path string, raw any, into reflect.Value) {
	n, ok := wholeNumber(raw)
	if !ok {
		d.fault(path, raw, "must be a whole number")
		return
	}
	l := limitOf(path)
	if n < math.MinInt32 || n > math.MaxInt32 || n == 0 && l.low > 0 {
		d.fault(path, raw, "%s", l.message())
		return
	}
	into.SetInt(n)
}

func limitOf(path string) limit {
	for _, l := range limits() {
		if l.path == path {
			return l
		}
	}
	return limit{low: math.MinInt32, high: math.MaxInt32}
}

func (d *decoder) duration(path string, raw any, into reflect.Value) {
	v, err := parseDuration(raw)
	if err != nil {
		d.fault(path, raw, "%s", err)
		return
	}
	into.SetInt(int64(v))
}
