package provider

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// decoder reads nodes of one entry into Go values and collects everything that does not fit. It is
// stricter than the YAML library: a number is no string, a repeated key is a fault, and nothing stops
// at the first fault. Messages never quote a value, since it may be a password.
type decoder struct {
	config *Config
	faults ConfigFaults
}

func (d *decoder) fault(key, message string) {
	d.faults = append(d.faults, d.config.Fault(key, message))
}

func (d *decoder) faultAt(line int, key, message string) {
	d.faults = append(d.faults, ConfigFault{Line: line, Entry: d.config.place(), Key: key, Message: message})
}

func (d *decoder) faulty(key string) bool {
	return slices.ContainsFunc(d.faults, func(f ConfigFault) bool { return f.Key == key })
}

// decode reads node, which stands at path, into the value that into points to.
func (d *decoder) decode(node ast.Node, path string, into any) {
	d.value(node, path, reflect.ValueOf(into).Elem())
}

// value reads node into v.
func (d *decoder) value(node ast.Node, path string, v reflect.Value) {
	node = unwrap(node)
	switch node.(type) {
	case *ast.AliasNode, *ast.TagNode:
		d.faultAt(lineOf(node), path, "aliases and tags are not read here; write the value out")
		return
	case *ast.NullNode:
		if v.Kind() != reflect.Struct {
			d.faultAt(lineOf(node), path, "has no value; give it one, or remove the key")
		}
		return
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d.duration(node, path, v)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(node, path, v)
	case reflect.Map:
		d.table(node, path, v)
	case reflect.Slice:
		d.list(node, path, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(node, path, v.Elem())
	default:
		d.scalar(node, path, v)
	}
}

func (d *decoder) scalar(node ast.Node, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		text, ok := textOf(node)
		if !ok {
			d.faultAt(lineOf(node), path, "must be a string; put it in quotes")
			return
		}
		v.SetString(text)
	case reflect.Bool:
		n, ok := node.(*ast.BoolNode)
		if !ok {
			d.faultAt(lineOf(node), path, "must be true or false")
			return
		}
		v.SetBool(n.Value)
	case reflect.Int, reflect.Int32, reflect.Int64:
		number, ok := whole(node)
		if !ok || v.OverflowInt(number) {
			d.faultAt(lineOf(node), path, fmt.Sprintf("must be a whole number of at most %d bits", v.Type().Bits()))
			return
		}
		v.SetInt(number)
	default:
		d.faultAt(lineOf(node), path, fmt.Sprintf("cannot be read into a %s; this is a fault of the program", v.Type()))
	}
}

// whole returns the number that node is; ok is false for anything else, and beyond 63 bits.
func whole(node ast.Node) (number int64, ok bool) {
	n, ok := node.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	if value, ok := n.Value.(uint64); ok {
		return int64(value), value <= math.MaxInt64
	}
	number, ok = n.Value.(int64)
	return number, ok
}

func (d *decoder) duration(node ast.Node, path string, v reflect.Value) {
	if number, ok := whole(node); ok && number == 0 {
		v.SetInt(0)
		return
	}
	text, _ := textOf(node)
	if parsed, err := time.ParseDuration(text); err == nil && parsed >= 0 {
		v.SetInt(int64(parsed))
		return
	}
	d.faultAt(lineOf(node), path, "must be a duration such as 90s or 10m, or 0")
}

func (d *decoder) structure(node ast.Node, path string, v reflect.Value) {
	pairs, _ := d.mapping(node, path)
	fields := map[string]int{}
	for i := range v.NumField() {
		if name := keyOf(v.Type().Field(i)); name != "" {
			fields[name] = i
		}
	}
	known := make([]string, 0, len(fields))
	for name := range fields {
		known = append(known, name)
	}
	slices.Sort(known)
	for _, p := range pairs {
		if i, ok := fields[p.key]; ok {
			d.value(p.value, join(path, p.key), v.Field(i))
			continue
		}
		d.faultAt(p.line, join(path, p.key), "is not known; known here are "+strings.Join(known, ", "))
	}
}

// keyOf returns the key that a field is written under; empty for one that is not written.
func keyOf(field reflect.StructField) string {
	tag, ok := field.Tag.Lookup("yaml")
	if !ok {
		tag = field.Tag.Get("json")
	}
	name, _, _ := strings.Cut(tag, ",")
	if name == "-" || !field.IsExported() {
		return ""
	}
	return name
}

// table reads a mapping whose keys are free.
func (d *decoder) table(node ast.Node, path string, v reflect.Value) {
	pairs, ok := d.mapping(node, path)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range pairs {
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(p.value, join(path, p.key), element)
		v.SetMapIndex(reflect.ValueOf(p.key).Convert(v.Type().Key()), element)
	}
}

func (d *decoder) list(node ast.Node, path string, v reflect.Value) {
	n, ok := node.(*ast.SequenceNode)
	if !ok {
		d.faultAt(lineOf(node), path, "must be a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Values), len(n.Values)))
	for i, value := range n.Values {
		d.value(value, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
}

// mapping returns the keys of node, each once, and reports those that come again or are no plain
// words.
func (d *decoder) mapping(node ast.Node, path string) (pairs []pair, ok bool) {
	all, ok := pairsOf(node)
	if !ok {
		d.faultAt(lineOf(node), path, "must be a mapping of keys to values")
		return nil, false
	}
	lines := map[string]int{}
	for _, p := range all {
		line, again := lines[p.key]
		if again {
			d.faultAt(p.line, join(path, p.key), fmt.Sprintf("is set on line %d already; remove one", line))
			continue
		}
		lines[p.key] = p.line
		pairs = append(pairs, p)
	}
	return pairs, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
