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
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return items, faults
}

// decode reads one document: first its envelope, then what is inside by the rules of the fleet.
func decode(d document) (Item, Faults) {
	e := envelope{item: Item{Source: d.source, Line: d.line, Labels: map[string]string{}}}
	e.read(d.value)
	item := e.item
	item.Proxy = fleet.Proxy{Name: item.Name, Labels: item.Labels, Broken: e.faults}
	if item.Spec != nil {
		spec, faults := fleet.Decode(item.Spec)
		item.Proxy.Spec, item.Proxy.Broken = spec, append(item.Proxy.Broken, faults...)
	}
	var out Faults
	for _, f := range fleet.Validate(item.Proxy) { // a broken spec or metadata is not judged in detail
		out = append(out, Fault{Source: d.source, Line: cmp.Or(d.lines.of(f.Path), d.line), Name: item.Name, Fault: f})
	}
	return item, out
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
