package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestADocumentIsReadAsFarAsItCanBe(t *testing.T) {
	t.Parallel()
	external := map[string]any{"mode": "External", "endpoint": map[string]any{"host": "h"}}
	spec := fleet.Spec{Mode: fleet.External, Endpoint: fleet.Endpoint{Host: "h"}}
	for _, row := range []struct {
		name string
		raw  map[string]any
		want fleet.Proxy // but Broken
		at   []string    // the paths of its faults
	}{
		{"all is well", map[string]any{"labels": map[string]any{"k": "v"}, "spec": external, "deleteTime": start.Add(time.Nanosecond), "rotateTime": start, "status": 7},
			fleet.Proxy{Labels: map[string]string{"k": "v"}, Spec: spec, DeleteTime: start, RotateTime: start}, nil},
		{"null is nothing", map[string]any{"spec": external, "deleteTime": nil, "rotateTime": nil}, fleet.Proxy{Spec: spec}, nil},
		{"nothing at all", nil, fleet.Proxy{}, []string{"spec"}},
		{"a spec that is none", map[string]any{"spec": "x"}, fleet.Proxy{}, []string{"spec"}},
		{"a spec of null", map[string]any{"spec": nil}, fleet.Proxy{}, []string{"spec"}},
		{"two faults in the spec", map[string]any{"spec": map[string]any{"mode": 7, "maxLeases": "many"}}, fleet.Proxy{}, []string{"spec.maxLeases", "spec.mode"}},
		{"labels that are none", map[string]any{"labels": 7, "spec": external}, fleet.Proxy{Labels: map[string]string{}, Spec: spec}, []string{"metadata.labels"}},
		{"one label that is none", map[string]any{"labels": map[string]any{"a": 1, "k": "v"}, "spec": external}, fleet.Proxy{Labels: map[string]string{"k": "v"}, Spec: spec}, []string{"metadata.labels.a"}},
		{"times that are none", map[string]any{"spec": external, "deleteTime": "soon", "rotateTime": 5}, fleet.Proxy{Spec: spec}, []string{"deleteTime", "rotateTime"}},
		{"keys that nobody knows", map[string]any{"spec": external, "colour": "red", "Spec": 1}, fleet.Proxy{Spec: spec}, []string{"Spec", "colour"}},
	} {
		got := store.DecodeDocument("a", row.raw)
		var at []string
		for _, f := range got.Broken {
			at = append(at, f.Path)
		}
		assert.Equal(t, row.at, at, row.name)
		got.Broken = nil
		row.want.Name = "a"
		assert.Equal(t, row.want, got, row.name)
	}
}
