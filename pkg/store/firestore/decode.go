package firestore

import "time"

// Documents are read field by field where people may have changed them by hand: what is not of the
// type that the plane writes counts as never written, and the rest is read.

// field returns data[key] if it is a T, else the zero T.
func field[T any](data map[string]any, key string) T {
	v, _ := data[key].(T)
	return v
}

// times returns the timestamps in the map data[key]; nil when there is no such map.
func times(data map[string]any, key string) map[string]time.Time {
	m := field[map[string]any](data, key)
	if m == nil {
		return nil
	}
	out := make(map[string]time.Time, len(m))
	for k, v := range m {
		if t, ok := v.(time.Time); ok {
			out[k] = t
		}
	}
	return out
}
