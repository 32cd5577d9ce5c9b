package manifest

import (
	"maps"
	"slices"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// envelope reads what stands around a spec.
type envelope struct {
	item   Item
	faults fleet.Faults
}

func (e *envelope) fault(path string, value any, message string) {
	e.faults = append(e.faults, fleet.Fault{Path: path, Value: fleet.ShowValue(value), Message: message})
}

func (e *envelope) read(doc map[string]any) {
	e.keys("", doc, []string{"apiVersion", "kind", "metadata", "spec"}, map[string]func(any){
		"apiVersion": func(v any) { e.word("apiVersion", v, fleet.APIVersion) },
		"kind":       func(v any) { e.word("kind", v, fleet.Kind) },
		"metadata":   e.metadata,
		"spec":       e.spec,
		"status":     ignored, // what `get -o yaml` printed can be applied again; the plane owns it
	})
}

func ignored(any) {}

// keys hands each value to the reader of its key; it reports keys that have none, and those that are
// missing. A key without a value is missing.
func (e *envelope) keys(prefix string, m map[string]any, required []string, readers map[string]func(any)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if reader, ok := readers[k]; !ok {
			e.fault(prefix+fleet.PrintableKey(k), nil, "unknown key")
		} else if m[k] != nil {
			reader(m[k])
		}
	}
	for _, k := range required {
		if m[k] == nil {
			e.fault(prefix+k, nil, "must be set")
		}
	}
}

func (e *envelope) word(path string, v any, want string) {
	if v != want {
		e.fault(path, v, "must be "+want)
	}
}

func (e *envelope) metadata(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		e.fault("metadata", v, "must be an object")
		return
	}
	e.keys("metadata.", m, []string{"name"}, map[string]func(any){
		"name": func(v any) {
			if e.item.Name, ok = v.(string); !ok {
				e.fault("metadata.name", v, "must be a string: put it into quotes")
			}
		},
		"labels": func(v any) {
			labels, faults := fleet.DecodeLabels(v)
			e.item.Labels, e.faults = labels, append(e.faults, faults...)
		},
		// Printed by `get -o yaml` for people.
		"createTime": ignored, "updateTime": ignored, "deleteTime": ignored, "rotateTime": ignored,
	})
}

func (e *envelope) spec(v any) {
	spec, ok := v.(map[string]any)
	if !ok {
		e.fault("spec", v, "must be an object")
		return
	}
	e.item.Spec = spec
}
