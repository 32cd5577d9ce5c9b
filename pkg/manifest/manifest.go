// Package manifest reads the manifests that operators write: YAML or JSON, strictly, with line numbers.
package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// Item is one Proxy of a manifest.
type Item struct {
	Source string // file that it is from
	Line   int    // where it begins
	Name   string
	Labels map[string]string // never nil: a manifest without labels means none
	Spec   map[string]any    // in the manifest's own form, as stores keep it
	Proxy  fleet.Proxy       // decoded
}

// Fault is one thing that is wrong in a manifest.
type Fault struct {
	Source string
	Line   int    // 0 where the fault belongs to no line
	Name   string // of the Proxy, where it has one
	fleet.Fault
}

// Error reads "fleet.yaml:12: us-east1-a: spec.endpoint.port: 70000: must be between 1 and 65535".
func (f Fault) Error() string {
	where := f.Source
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d", f.Source, f.Line)
	}
	parts := []string{where}
	if f.Name != "" {
		parts = append(parts, f.Name)
	}
	what := f.Fault.Error()
	if f.Path == "" {
		what = f.Message
	}
	return strings.Join(append(parts, what), ": ")
}

// Faults are all faults of all manifests that were read, in their order.
type Faults []Fault

// Error joins the faults, one a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Read reads all documents of one manifest. On any fault the error is Faults, with every fault of
// every document, and there are no items.
func Read(source string, data []byte) ([]Item, error) {
	items, faults := read(source, data)
	faults = append(faults, duplicates(items)...)
	if len(faults) > 0 {
		return nil, faults
	}
	return items, nil
}

func read(source string, data []byte) ([]Item, Faults) {
	docs, faults := parse(source, data)
	var items []Item
	for _, d := range docs {
		item, wrong := decode(d)
		items = append(items, item)
		faults = append(faults, wrong...)
	}
	return items, faults
}

// decode reads one document: first its envelope, then what is inside by the rules of the fleet.
func decode(d document) (Item, Faults) {
	item := Item{Source: d.source, Line: d.line, Labels: map[string]string{}}
	var found fleet.Faults
	fault := func(path, value, format string, args ...any) {
		found = append(found, fleet.Fault{Path: path, Value: value, Message: fmt.Sprintf(format, args...)})
	}
	d.keys("", d.value, fault, map[string]func(any){
		"apiVersion": func(v any) {
			if v != fleet.APIVersion {
				fault("apiVersion", fmt.Sprintf("%q", fmt.Sprint(v)), "must be %s", fleet.APIVersion)
			}
		},
		"kind": func(v any) {
			if v != fleet.Kind {
				fault("kind", fmt.Sprintf("%q", fmt.Sprint(v)), "must be %s", fleet.Kind)
			}
		},
		"metadata": func(v any) { d.metadata(v, &item, fault) },
		"spec": func(v any) {
			spec, ok := v.(map[string]any)
			if !ok {
				fault("spec", "", "must be an object")
				return
			}
			item.Spec = spec
		},
		"status": func(any) {}, // what `get -o yaml` printed can be applied again; the plane owns it
	})
	for _, key := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if _, ok := d.value[key]; !ok {
			fault(key, "", "must be set")
		}
	}
	item.Proxy = fleet.Proxy{Name: item.Name, Labels: item.Labels, Broken: found}
	if item.Spec != nil {
		spec, faults := fleet.Decode(item.Spec)
		item.Proxy.Spec, item.Proxy.Broken = spec, append(item.Proxy.Broken, faults...)
	}
	return item, d.faults(item)
}

// faults adds the fleet's own judgement and says on which line each fault is.
func (d document) faults(item Item) Faults {
	var out Faults
	for _, f := range fleet.Validate(item.Proxy) {
		if item.Spec == nil && strings.HasPrefix(f.Path, "spec.") {
			continue // that there is no spec has been said
		}
		out = append(out, Fault{Source: d.source, Line: d.lineOf(f.Path), Name: item.Name, Fault: f})
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return out
}

func (d document) metadata(v any, item *Item, fault func(path, value, format string, args ...any)) {
	m, ok := v.(map[string]any)
	if !ok {
		fault("metadata", "", "must be an object")
		return
	}
	ignored := func(any) {} // printed by `get -o yaml` for people
	d.keys("metadata.", m, fault, map[string]func(any){
		"name": func(v any) {
			if item.Name, ok = v.(string); !ok {
				fault("metadata.name", fmt.Sprint(v), "must be a string")
			}
		},
		"labels": func(v any) {
			labels, ok := v.(map[string]any)
			if !ok && v != nil {
				fault("metadata.labels", "", "must be an object")
			}
			for k, value := range labels {
				if s, ok := value.(string); ok {
					item.Labels[k] = s
				} else {
					fault("metadata.labels."+k, fmt.Sprint(value), "must be a string: put it into quotes")
				}
			}
		},
		"createTime": ignored, "updateTime": ignored, "deleteTime": ignored, "rotateTime": ignored,
	})
	if _, ok := m["name"]; !ok {
		fault("metadata.name", "", "must be set")
	}
}

// keys hands each value to the reader of its key, and reports keys that have none.
func (d document) keys(prefix string, m map[string]any, fault func(path, value, format string, args ...any), readers map[string]func(any)) {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		if reader, ok := readers[k]; ok {
			reader(m[k])
			continue
		}
		fault(prefix+k, "", "unknown key")
	}
}

// duplicates finds names that stand twice.
func duplicates(items []Item) Faults {
	var out Faults
	first := map[string]Item{}
	for _, i := range items {
		if before, ok := first[i.Name]; ok && i.Name != "" {
			out = append(out, Fault{Source: i.Source, Line: i.Line, Name: i.Name, Fault: fleet.Fault{
				Path: "metadata.name", Message: fmt.Sprintf("must be unique: %s:%d has it, too", before.Source, before.Line),
			}})
			continue
		}
		first[i.Name] = i
	}
	return out
}
