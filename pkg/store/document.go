package store

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// The fields of a stored Proxy document. Labels and spec have the manifest's own form.
const (
	FieldLabels     = "labels"
	FieldSpec       = "spec"
	FieldStatus     = "status"
	FieldDeleteTime = "deleteTime"
	FieldRotateTime = "rotateTime"
)

// DecodeDocument reads what people write of a stored document: everything but the status. It never
// fails: Broken says what could not be read, and the rest is filled in.
func DecodeDocument(name string, raw map[string]any) fleet.Proxy {
	p := fleet.Proxy{Name: name}
	fault := func(path, format string, args ...any) {
		p.Broken = append(p.Broken, fleet.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		value := raw[key]
		switch key {
		case FieldLabels:
			labels, faults := fleet.DecodeLabels(value)
			p.Labels, p.Broken = labels, append(p.Broken, faults...)
		case FieldSpec:
			spec, ok := value.(map[string]any)
			if !ok {
				fault("spec", "must be an object")
				continue
			}
			s, faults := fleet.Decode(spec)
			p.Spec, p.Broken = s, append(p.Broken, faults...)
		case FieldDeleteTime:
			p.DeleteTime = decodeTime(value, key, fault)
		case FieldRotateTime:
			p.RotateTime = decodeTime(value, key, fault)
		case FieldStatus:
		default:
			fault(fleet.PrintableKey(key), "unknown key")
		}
	}
	if _, ok := raw[FieldSpec]; !ok {
		fault("spec", "must be set")
	}
	return p
}

func decodeTime(value any, path string, fault func(path, format string, args ...any)) time.Time {
	if value == nil {
		return time.Time{}
	}
	t, ok := value.(time.Time)
	if !ok {
		fault(path, "must be a timestamp")
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
