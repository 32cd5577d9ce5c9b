package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
	"crawl.example.com/proxyfleet/pkg/testclock"
)

// onFirestore is a rig over a project of the emulator that no other test uses.
func onFirestore(t *testing.T) *rig {
	t.Helper()
	if os.Getenv("FIRESTORE_EMULATOR_HOST") == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("FIRESTORE_EMULATOR_HOST must be set where CI is: run make test")
		}
		t.Skip("SKIPPED: no Firestore emulator; run make test, or set FIRESTORE_EMULATOR_HOST")
	}
	s, err := firestore.Open(t.Context(), fmt.Sprintf("test-%d", rand.Int64()), "(default)")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return &rig{t: t, clock: testclock.At(time.Now().UTC().Truncate(time.Microsecond)), store: s, dir: t.TempDir()}
}

func TestOnFirestoreADocumentLivesFromApplyToDelete(t *testing.T) {
	t.Parallel()
	r := onFirestore(t)
	require.Equal(t, "a created\n", r.ok(document("a"), "apply", "-f", "-"))
	require.Equal(t, "a unchanged\n", r.ok(document("a"), "apply", "-f", "-"))
	r.ready("a")
	require.Equal(t, "a unchanged\n", r.ok(r.ok("", "get", "proxies", "-o", "yaml"), "apply", "-f", "-"))
	require.Equal(t, "a changed\n", r.ok(document("a", "maxLeases: 5", "maxLeases: 7", "{pool: news}", "{}"), "apply", "-f", "-"))
	require.Empty(t, r.proxy("a").Labels)
	require.Equal(t, "a paused\n", r.ok("", "pause", "a"))
	require.Contains(t, r.ok("", "describe", "a"), "spec.paused is true")
	require.Equal(t, "a resumed\n", r.ok("", "resume", "a"))
	require.Equal(t, "a will be rotated\n", r.ok("", "rotate", "a"))
	require.WithinDuration(t, r.clock.Now(), r.proxy("a").RotateTime, time.Millisecond)
	got := r.run(document("a", "provider: mock", "provider: gce"), "apply", "-f", "-")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.errs, "spec.provider")
	require.Equal(t, "a will be deleted\n", r.ok("", "delete", "a"))
	require.Contains(t, r.ok("", "get", "proxies"), "Deleting")
	require.Equal(t, exitNotFound, r.run("", "describe", "b").code)
}

func TestOnFirestoreTwoOperatorsDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		meddle func(*rig)
		code   int
	}{
		"somebody changes it":       {func(r *rig) { r.ok(document("a", "maxLeases: 5", "maxLeases: 7"), "apply", "-f", "-") }, exitConflict},
		"the plane writes a status": {func(r *rig) { r.ready("a") }, exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := onFirestore(t)
			r.ok(document("a"), "apply", "-f", "-")
			done := false
			got := r.runOn(t.Context(), meddler{r.store, func() {
				if !done {
					done = true
					row.meddle(r)
				}
			}}, document("a", "maxLeases: 5", "maxLeases: 6"), "apply", "-f", "-")
			require.Equal(t, row.code, got.code, got.errs)
		})
	}
}

func TestOnFirestoreADocumentThatPeopleBrokeIsShownAndMended(t *testing.T) {
	t.Parallel()
	r := onFirestore(t)
	raw, ok := r.store.(interface {
		PutRaw(ctx context.Context, name string, doc map[string]any) error
	})
	require.True(t, ok)
	require.NoError(t, raw.PutRaw(t.Context(), "a", map[string]any{"spec": map[string]any{"mode": "Managed", "colour": "red", "maxLeases": "many"}}))
	out := r.ok("", "describe", "a")
	require.Contains(t, out, "Rejected")
	require.Contains(t, out, "spec.colour")
	got := r.run("", "pause", "a")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.errs, "cannot be changed while its document is broken")
	require.Equal(t, "a changed\n", r.ok(document("a"), "apply", "-f", "-"))
	require.Contains(t, r.ok("", "get", "proxies"), "Pending")
}

func TestOnFirestoreTheRealProgramWorks(t *testing.T) {
	t.Parallel()
	onFirestore(t)
	project := fmt.Sprintf("test-%d", rand.Int64())
	program := func(in string, args ...string) said {
		var out, errs buffer
		code := run(t.Context(), append([]string{"--project", project}, args...), strings.NewReader(in), &out, &errs, openFirestore)
		return said{code, out.String(), errs.String()}
	}
	require.Equal(t, said{exitOK, "a created\n", ""}, program(document("a"), "apply", "-f", "-"))
	require.Contains(t, program("", "get", "proxies").out, "Pending")
	got := program("", "doctor")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.out, "none has finished yet")
	require.Contains(t, got.out, "on the emulator at")
}

func TestPlantedSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	withSecret := document("a", "{port: 3128}", "{port: 3128, credentialsSecretRef: {name: proxy-auth, key: basic}}")
	bad := document("a", "{port: 3128}", "{port: 3128, host: \"http://crawler:"+planted+"@192.0.2.1\", credentialsSecretRef: \"crawler:"+planted+"\"}")
	var all []said
	all = append(all, r.run(bad, "validate", "-f", "-"), r.run(bad, "apply", "-f", "-"), r.run(withSecret, "apply", "-f", "-"))
	require.Equal(t, exitFailed, all[0].code)
	require.Equal(t, exitOK, all[2].code)
	r.ready("a")
	_, err := r.store.CreateSlot(t.Context(), store.Slot{Proxy: "a", LeaseID: "a.0." + planted, ExpireTime: r.clock.Now().Add(time.Hour)}, nil)
	require.NoError(t, err)
	r.status("a", func(s *fleet.Status) { s.AddEvent(r.clock.Now(), "Created", "") })
	for _, command := range [][]string{
		{"get", "proxies"}, {"get", "proxies", "-o", "wide"}, {"get", "proxies", "-o", "yaml"}, {"get", "proxies", "-o", "json"}, {"describe", "a"}, {"doctor"},
		{"pause", "a"}, {"rotate", "a"}, {"delete", "a"},
	} {
		all = append(all, r.run("", command...))
	}
	for _, got := range all {
		require.NotContains(t, got.out+got.errs, planted)
		require.NotContains(t, got.out+got.errs, "planted")
	}
}
