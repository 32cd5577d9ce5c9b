package storetest

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// picture shows v as it is now, whatever shares memory with it and changes later.
func picture(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// spoil changes everything that can be reached from a pointer: fields, behind pointers, in slices and
// in maps.
func spoil(v any) { spoilValue(reflect.ValueOf(v).Elem()) }

func spoilValue(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(at(12345 * time.Hour)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoilValue(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				spoilValue(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoilValue(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			spoilValue(e)
			v.SetMapIndex(k, e)
		}
	case reflect.String:
		v.SetString("spoilt")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 77)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	}
}

// requireFull fails where a field is zero: so that the values which cases write know of every field.
func requireFull(t *testing.T, v any) {
	t.Helper()
	full(t, reflect.TypeOf(v).Name(), reflect.ValueOf(v))
}

func full(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	if v.Type() != reflect.TypeFor[time.Time]() && v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				full(t, path+"."+f.Name, v.Field(i))
			}
		}
		return
	}
	require.False(t, v.IsZero(), "%s is not set: give it a value, so that stores are tested with it", path)
	switch v.Kind() {
	case reflect.Pointer:
		if v.Elem().Kind() == reflect.Struct {
			full(t, path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			full(t, path, v.Index(i))
		}
	}
}
