package fleet

import (
	"reflect"
	"strings"
)

// Encode returns a spec in the manifest's form, of the types that every store keeps: int64, string,
// bool, []any and map[string]any. Fields left out stay left out; an explicit maxLeases of 0 stays.
// Decode reads it back.
func Encode(s Spec) map[string]any { return encodeStruct(reflect.ValueOf(s)) }

func encodeStruct(v reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if options != "" && v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 {
			continue
		}
		out[name] = encodeValue(v.Field(i))
	}
	return out
}

func encodeValue(v reflect.Value) any {
	if d, ok := v.Interface().(Duration); ok {
		return d.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encodeValue(v.Elem())
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = encodeValue(v.Index(i))
		}
		return out
	case reflect.Bool:
		return v.Bool()
	case reflect.Int32:
		return v.Int()
	}
	return v.String()
}
