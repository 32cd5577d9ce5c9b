// Package storetest is the suite that every store passes: one case per promise of package store.
package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Harness is a store under test.
type Harness struct {
	// Store is empty, and no other test sees it.
	Store store.Store
	// PutRaw stores a document as somebody might edit it by hand. Whether a status that doc does not
	// have stays is left open.
	PutRaw func(name string, doc map[string]any)
}

// Run runs the suite; open returns a fresh harness for each case.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, h Harness)
}

func cases() []testCase {
	var out []testCase
	for _, group := range [][]testCase{
		callCases(), proxyCases(), statusCases(), slotCases(), viewCases(), requestCases(), catalogCases(), runCases(),
	} {
		out = append(out, group...)
	}
	return out
}

// external is the spec of a proxy that somebody else runs.
func external(more map[string]any) map[string]any {
	spec := map[string]any{"mode": "External", "endpoint": map[string]any{"host": "proxy.example.net"}}
	for k, v := range more {
		spec[k] = v
	}
	return spec
}

func create(t *testing.T, s store.Store, name string) fleet.Proxy {
	t.Helper()
	p, err := s.CreateProxy(t.Context(), name, store.Edit{Labels: map[string]string{"pool": "news"}, Spec: external(nil)})
	require.NoError(t, err)
	return p
}

func get(t *testing.T, s store.Store, name string) fleet.Proxy {
	t.Helper()
	p, err := s.GetProxy(t.Context(), name)
	require.NoError(t, err)
	return p
}

// at is a time in microseconds, as stores keep it.
func at(d time.Duration) time.Time {
	return time.Date(2030, 1, 1, 0, 0, 0, 123456000, time.UTC).Add(d)
}
