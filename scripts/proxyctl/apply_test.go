package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func TestValidateNamesEveryFault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := r.file("fleet.yaml", document("us-1", "port: 3128", "port: 70000", "maxLeases: 5", "maxLeases: 2000", "provider: mock", "provider: mock\n  colour: red", "e2-micro", "E2 micro"))
	got := r.run("", "validate", "-f", path)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.errs, "proxyctl: 4 faults")
	for _, fault := range []string{"spec.endpoint.port", "spec.maxLeases", "spec.colour", "spec.placement.machineType"} {
		assert.Contains(t, got.errs, fault)
	}
	for _, line := range strings.Split(strings.TrimSpace(got.errs), "\n")[:4] {
		assert.Contains(t, line, "fleet.yaml:", "every fault has its place")
		assert.Contains(t, line, "us-1", "every fault has its proxy")
	}
	require.Empty(t, got.out)
}

func TestValidateAsksNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.runOn(t.Context(), nil, document("us-1")+"---\n"+document("us-2"), "validate", "-f", "-")
	require.Equal(t, said{exitOK, "2 valid\n", ""}, got)
}

func TestApplyReadsFilesFoldersAndStandardInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.file("a.yaml", document("a"))
	r.file("b.yaml", document("b"))
	require.Equal(t, "a created\nb created\n", r.ok("", "apply", "-f", r.dir))
	require.Equal(t, "c created\n", r.ok(document("c"), "apply", "-f", "-"))
	require.Equal(t, map[string]string{"pool": "news"}, r.proxy("c").Labels)
}

func TestApplySaysWhatItChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, "a created (dry run)\n", r.ok(document("a"), "apply", "--dry-run", "-f", "-"))
	require.Equal(t, exitNotFound, r.run("", "describe", "a").code, "a dry run writes nothing")
	require.Equal(t, "a created\n", r.ok(document("a"), "apply", "-f", "-"))
	before := r.proxy("a").UpdateTime
	require.Equal(t, "a unchanged\n", r.ok(document("a"), "apply", "-f", "-"))
	require.Equal(t, before, r.proxy("a").UpdateTime, "unchanged is not written")
	changed := document("a", "maxLeases: 5", "maxLeases: 7")
	require.Equal(t, "a changed (dry run)\n", r.ok(changed, "apply", "--dry-run", "-f", "-"))
	require.Equal(t, before, r.proxy("a").UpdateTime)
	require.Equal(t, "a changed\n", r.ok(changed, "apply", "-f", "-"))
	require.Equal(t, int32(7), r.proxy("a").Spec.MaxLeasesOrDefault())
	require.Equal(t, "a changed\n", r.ok(document("a", "maxLeases: 5", "maxLeases: 7", "{pool: news}", "{pool: shops}"), "apply", "-f", "-"))
	require.Equal(t, map[string]string{"pool": "shops"}, r.proxy("a").Labels)
}

func TestWhatWasAcceptedCannotChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a"), "apply", "-f", "-")
	r.ready("a")
	got := r.run(document("b")+"---\n"+document("a", "provider: mock", "provider: gce"), "apply", "-f", "-")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.errs, "a: spec.provider")
	require.Contains(t, got.errs, "1 fault, nothing was written")
	require.Empty(t, got.out)
	require.Equal(t, exitNotFound, r.run("", "describe", "b").code, "a fault of one keeps all from being written")
}

func TestWhatIsBeingDeletedIsNotAppliedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a"), "apply", "-f", "-")
	r.ok("", "delete", "a")
	got := r.run(document("a"), "apply", "-f", "-")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.errs, "is being deleted")
}

// meddler lets somebody else act before each edit or creation.
type meddler struct {
	store.Store
	before func()
}

func (m meddler) EditProxy(ctx context.Context, name string, e store.Edit, v time.Time) (fleet.Proxy, error) {
	m.before()
	return m.Store.EditProxy(ctx, name, e, v)
}

func (m meddler) CreateProxy(ctx context.Context, name string, e store.Edit) (fleet.Proxy, error) {
	m.before()
	return m.Store.CreateProxy(ctx, name, e)
}

func TestTwoOperatorsDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	mine, theirs := document("a", "maxLeases: 5", "maxLeases: 6"), document("a", "maxLeases: 5", "maxLeases: 7")
	for name, row := range map[string]struct {
		stored  string
		command []string
		meddle  func(*rig)
		code    int
		leases  int32 // afterwards
	}{
		"both change":                           {document("a"), []string{"apply", "-f", "-"}, func(r *rig) { r.ok(theirs, "apply", "-f", "-") }, exitConflict, 7},
		"both change to the same":               {document("a"), []string{"apply", "-f", "-"}, func(r *rig) { r.ok(mine, "apply", "-f", "-") }, exitOK, 6},
		"both create":                           {"", []string{"apply", "-f", "-"}, func(r *rig) { r.ok(theirs, "apply", "-f", "-") }, exitConflict, 7},
		"both create the same":                  {"", []string{"apply", "-f", "-"}, func(r *rig) { r.ok(mine, "apply", "-f", "-") }, exitOK, 6},
		"the plane writes a status":             {document("a"), []string{"apply", "-f", "-"}, func(r *rig) { r.ready("a") }, exitOK, 6},
		"one deletes":                           {document("a"), []string{"apply", "-f", "-"}, func(r *rig) { r.ok("", "delete", "a") }, exitConflict, 5},
		"one pauses, one changes":               {document("a"), []string{"pause", "a"}, func(r *rig) { r.ok(theirs, "apply", "-f", "-") }, exitConflict, 7},
		"one pauses, the plane writes a status": {document("a"), []string{"pause", "a"}, func(r *rig) { r.ready("a") }, exitOK, 5},
		"gone meanwhile": {document("a"), []string{"pause", "a"}, func(r *rig) {
			require.NoError(r.t, r.store.RemoveProxy(r.t.Context(), r.proxy("a")))
		}, exitNotFound, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if row.stored != "" {
				r.ok(row.stored, "apply", "-f", "-")
			}
			done := false
			got := r.runOn(t.Context(), meddler{r.store, func() {
				if !done {
					done = true
					row.meddle(r)
				}
			}}, mine, row.command...)
			require.Equal(t, row.code, got.code, got.errs)
			if row.leases > 0 {
				require.Equal(t, row.leases, r.proxy("a").Spec.MaxLeasesOrDefault())
			}
		})
	}
}

func TestAPlaneThatNeverStopsWritingIsAConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a"), "apply", "-f", "-")
	got := r.runOn(t.Context(), meddler{r.store, func() { r.ready("a") }}, document("a", "maxLeases: 5", "maxLeases: 6"), "apply", "-f", "-")
	require.Equal(t, exitConflict, got.code)
	require.Contains(t, got.errs, "a: changed meanwhile")
}
