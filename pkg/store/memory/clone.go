package memory

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// natural returns a copy of v of the types that Firestore gives back, whatever types it was made of:
// int64, float64, string, bool, []byte, time.Time in UTC microseconds, []any and map[string]any.
func natural(v any) any {
	if t, ok := v.(time.Time); ok {
		return micros(t)
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32:
		return r.Int()
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(r.Uint())
	case reflect.Float32:
		return r.Float()
	case reflect.String:
		return r.String()
	case reflect.Map:
		return naturalMap(r)
	case reflect.Slice:
		return naturalSlice(r)
	}
	return v
}

func naturalMap(r reflect.Value) any {
	if r.IsNil() {
		return nil
	}
	out := make(map[string]any, r.Len())
	for _, k := range r.MapKeys() {
		out[k.String()] = natural(r.MapIndex(k).Interface())
	}
	return out
}

func naturalSlice(r reflect.Value) any {
	if b, ok := r.Interface().([]byte); ok {
		return slices.Clone(b)
	}
	if r.IsNil() {
		return nil
	}
	out := make([]any, r.Len())
	for i := range out {
		out[i] = natural(r.Index(i).Interface())
	}
	return out
}

// cloneSpec returns a copy that shares nothing with s.
func cloneSpec(s fleet.Spec) fleet.Spec {
	if s.Placement = clone(s.Placement); s.Placement != nil {
		s.Placement.Zones = slices.Clone(s.Placement.Zones)
	}
	if s.CloudInit = clone(s.CloudInit); s.CloudInit != nil {
		s.CloudInit.SecretRef = clone(s.CloudInit.SecretRef)
	}
	s.Endpoint.CredentialsSecretRef = clone(s.Endpoint.CredentialsSecretRef)
	s.HealthCheck, s.MaxLeases = clone(s.HealthCheck), clone(s.MaxLeases)
	if s.Lifecycle = clone(s.Lifecycle); s.Lifecycle != nil {
		l := s.Lifecycle
		l.ProvisionTimeout, l.ReplaceUnhealthyAfter = clone(l.ProvisionTimeout), clone(l.ReplaceUnhealthyAfter)
		l.MaxAge, l.DrainTimeout = clone(l.MaxAge), clone(l.DrainTimeout)
	}
	return s
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// cloneEntry returns a copy that shares nothing with e, in the form in which Firestore gives it back:
// times in UTC microseconds, empty maps nil.
func cloneEntry(e fleet.Entry) fleet.Entry {
	e.Credentials = clone(e.Credentials)
	e.DrainDeadline, e.NarrowTime, e.Verdict.Since = micros(e.DrainDeadline), micros(e.NarrowTime), micros(e.Verdict.Since)
	if e.Labels = maps.Clone(e.Labels); len(e.Labels) == 0 {
		e.Labels = nil
	}
	if e.Quarantine = cloneTimes(e.Quarantine); len(e.Quarantine) == 0 {
		e.Quarantine = nil
	}
	return e
}

func cloneRun(r store.Run) store.Run {
	r.Orphans, r.Cooldowns, r.Summary = cloneTimes(r.Orphans), cloneTimes(r.Cooldowns), slices.Clone(r.Summary)
	return r
}

func cloneTimes(times map[string]time.Time) map[string]time.Time {
	out := maps.Clone(times)
	for k, t := range out {
		out[k] = micros(t)
	}
	return out
}
