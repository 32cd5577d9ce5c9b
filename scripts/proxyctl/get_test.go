package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestGetShowsAFleet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, "NAME  STATE  SINCE  PROBE  MS  MODE  AGE\n", r.ok("", "get", "proxies"), "an empty fleet")
	r.ok(document("us-1")+"---\n"+document("europe-west1-b", "{pool: news}", "{pool: shops, tier: a}"), "apply", "-f", "-")
	r.ready("us-1")
	r.clock.Advance(3*time.Minute + time.Second)
	require.Equal(t, strings.TrimLeft(`
NAME            STATE    SINCE  PROBE  MS  MODE     AGE
europe-west1-b  Pending  3m     -      -   Managed  3m
us-1            Ready    3m     ok     42  Managed  3m
`, "\n"), r.ok("", "get", "proxies"))
	require.Equal(t, strings.TrimLeft(`
NAME            STATE    SINCE  PROBE  MS  MODE     AGE  ADDRESS         ZONE        INSTANCE  LABELS             WHY
europe-west1-b  Pending  3m     -      -   Managed  3m   -               -           -         pool=shops,tier=a  the plane has not seen it yet
us-1            Ready    3m     ok     42  Managed  3m   192.0.2.1:3128  us-east1-b  vm-us-1   pool=news          probes pass; it can be leased
`, "\n"), r.ok("", "get", "proxies", "-o", "wide"))
	require.Contains(t, r.ok("", "get", "proxies", "us-1"), "us-1")
	require.NotContains(t, r.ok("", "get", "proxies", "us-1"), "europe")
	require.NotContains(t, r.ok("", "get", "proxies", "-l", "tier=a"), "us-1")
	require.NotContains(t, r.ok("", "get", "proxies", "-l", "tier=a", "-l", "pool=news"), "europe")
}

func TestWhatGetPrintsCanBeAppliedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a")+"---\n"+document("b", "maxLeases: 5", "maxLeases: 0"), "apply", "-f", "-")
	r.ready("a")
	all := r.ok("", "get", "proxies", "-o", "yaml")
	require.Equal(t, "a unchanged\nb unchanged\n", r.ok(all, "apply", "-f", "-"), all)
	require.Equal(t, "a created\nb created\n", newRig(t).ok(all, "apply", "-f", "-"), "elsewhere, too")
	list := r.ok("", "get", "proxies", "-o", "json")
	require.Equal(t, "a unchanged\nb unchanged\n", r.ok(list, "apply", "-f", "-"), list)
	for _, form := range []string{"yaml", "json"} {
		one := r.ok("", "get", "proxies", "a", "-o", form)
		require.Equal(t, "a unchanged\n", r.ok(one, "apply", "-f", "-"), one)
	}
}

func TestJSONIsOneObjectForOneNameAndAListOtherwise(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, "[]\n", r.ok("", "get", "proxies", "-o", "json"))
	r.ok(document("a"), "apply", "-f", "-")
	r.ready("a")
	var one fleet.Document
	require.NoError(t, json.Unmarshal([]byte(r.ok("", "get", "proxies", "a", "-o", "json")), &one))
	require.Equal(t, "a", one.Metadata.Name)
	require.True(t, one.Status.Health.Healthy)
	var list []fleet.Document
	require.NoError(t, json.Unmarshal([]byte(r.ok("", "get", "proxies", "-o", "json")), &list))
	require.Len(t, list, 1)
}

func TestWatchShowsWhatChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a")+"---\n"+document("b"), "apply", "-f", "-")
	var out, errs buffer
	ctx, stop := contextOf(t)
	ended := make(chan int, 1)
	c := r.cli(r.store, "", &out, &errs)
	go func() { ended <- c.run(ctx, []string{"--project", "p", "get", "proxies", "-w"}) }()
	r.sees(&out, "b")
	r.clock.Advance(time.Second)
	r.ready("b")
	r.sees(&out, "Ready")
	require.NoError(t, r.store.RemoveProxy(t.Context(), r.proxy("a")))
	r.sees(&out, "Gone")
	stop()
	require.Equal(t, exitOK, <-ended)
	require.Equal(t, strings.TrimLeft(`
NAME  STATE    SINCE  PROBE  MS  MODE     AGE
a     Pending  0s     -      -   Managed  0s
b     Pending  0s     -      -   Managed  0s
b     Ready    0s     ok     42  Managed  0s
a     Gone     -      -      -   Managed  1s
`, "\n"), out.String())
}

func TestStatesHaveColoursOnATerminalOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a")+"---\n"+document("b"), "apply", "-f", "-")
	r.ready("a")
	require.NotContains(t, r.ok("", "get", "proxies"), "\x1b")
	var out, errs buffer
	c := r.cli(r.store, "", &out, &errs)
	c.colours = true // as on a terminal
	require.Equal(t, exitOK, c.run(t.Context(), []string{"--project", "p", "get", "proxies"}))
	require.Contains(t, out.String(), "\x1b[32mReady\x1b[0m    0s", "green, and columns stay columns")
	require.Contains(t, out.String(), "\x1b[33mPending\x1b[0m  0s")
}

func TestNobodyMovesTheCursorOfWhoeverLooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a"), "apply", "-f", "-")
	r.ready("a")
	hostile := "up\x1b[2J\x07\u202e\nnext line"
	r.status("a", func(s *fleet.Status) {
		s.Health = fleet.Health{Outcome: fleet.OutcomeReset, Detail: hostile, LastProbeTime: r.clock.Now(), UnhealthySince: r.clock.Now(), ExitAddress: hostile}
		s.AddEvent(r.clock.Now(), "Reason", hostile)
		s.Conditions.Set(fleet.Condition{Type: fleet.ConditionReady, Reason: hostile, Message: hostile}, r.clock.Now())
		s.Instance.Zone = hostile
	})
	for _, command := range [][]string{{"get", "proxies", "-o", "wide"}, {"describe", "a"}} {
		out := r.ok("", command...)
		require.Contains(t, out, "next line")
		for _, bad := range []string{"\x1b", "\x07", "\u202e", "\nnext"} {
			require.NotContains(t, out, bad)
		}
	}
}
