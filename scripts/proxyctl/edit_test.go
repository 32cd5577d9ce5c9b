package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func TestNamedCommandsDoOneThingEach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("a")+"---\n"+document("b"), "apply", "-f", "-")
	for _, row := range []struct {
		command []string
		out     string
	}{
		{[]string{"pause", "--dry-run", "a"}, "a would be changed: pause (dry run)\n"},
		{[]string{"resume", "a"}, "a is resumed already\n"},
		{[]string{"pause", "a", "b"}, "a paused\nb paused\n"},
		{[]string{"pause", "a"}, "a is paused already\n"},
		{[]string{"resume", "a"}, "a resumed\n"},
		{[]string{"rotate", "--dry-run", "a"}, "a would be changed: rotate (dry run)\n"},
		{[]string{"rotate", "a"}, "a will be rotated\n"},
		{[]string{"delete", "--dry-run", "a"}, "a would be changed: delete (dry run)\n"},
		{[]string{"delete", "a"}, "a will be deleted\n"},
		{[]string{"delete", "a"}, "a is being deleted already\n"},
	} {
		require.Equal(t, row.out, r.ok("", row.command...))
	}
	a, b := r.proxy("a"), r.proxy("b")
	require.False(t, a.Spec.Paused)
	require.True(t, b.Spec.Paused)
	require.Equal(t, r.clock.Now(), a.RotateTime)
	require.Equal(t, r.clock.Now(), a.DeleteTime)
	require.Zero(t, b.DeleteTime)
	require.Equal(t, map[string]string{"pool": "news"}, b.Labels, "a pause leaves labels alone")
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	external := document("e", "mode: Managed\n  provider: mock", "mode: External", "  placement: {region: us-east1, zone: us-east1-b, machineType: e2-micro}\n", "",
		"  cloudInit: {inline: \"#cloud-config\"}\n", "", "{port: 3128}", "{host: proxy.example.com, port: 3128}")
	for name, row := range map[string]struct {
		command []string
		code    int
		errs    string
	}{
		"an unknown command":           {[]string{"aply"}, exitUsage, "did you mean apply?"},
		"a command like none":          {[]string{"zzzzzzzz"}, exitUsage, `unknown command "zzzzzzzz"`},
		"an unknown flag":              {[]string{"get", "proxies", "--colour"}, exitUsage, "unknown flag"},
		"no name":                      {[]string{"delete"}, exitUsage, "requires at least 1 arg"},
		"two names to describe":        {[]string{"describe", "a", "b"}, exitUsage, "accepts 1 arg"},
		"no manifest":                  {[]string{"apply"}, exitUsage, "which manifest?"},
		"a manifest that is not there": {[]string{"apply", "-f", "/nowhere.yaml"}, exitFailed, "/nowhere.yaml"},
		"something else to get":        {[]string{"get", "pods"}, exitUsage, "say what to get: proxies"},
		"another form":                 {[]string{"get", "proxies", "-o", "xml"}, exitUsage, "must be table, wide, yaml or json"},
		"half a label":                 {[]string{"get", "proxies", "-l", "pool"}, exitUsage, "must be k=v"},
		"no such proxy to get":         {[]string{"get", "proxies", "x"}, exitNotFound, "x: not found"},
		"no such proxy to describe":    {[]string{"describe", "x"}, exitNotFound, "x: not found"},
		"no such proxy to delete":      {[]string{"delete", "x"}, exitNotFound, "x: not found"},
		"no such proxy to rotate":      {[]string{"rotate", "x"}, exitNotFound, "x: not found"},
		"no such proxy to pause":       {[]string{"pause", "x"}, exitNotFound, "x: not found"},
		"an External to rotate":        {[]string{"rotate", "e"}, exitFailed, "e: is External"},
		"waiting too long":             {[]string{"delete", "e", "--wait", "--timeout", "1ms"}, exitTimeout, "gave up waiting; the change itself was made"},
		"help":                         {[]string{"--help"}, exitOK, ""},
		"nothing":                      {nil, exitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.ok(external, "apply", "-f", "-")
			got := r.run("", row.command...)
			require.Equal(t, row.code, got.code, got.errs)
			require.Contains(t, got.errs, row.errs)
		})
	}
}

func TestAProjectMustBeNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.run("", "--project", "", "get", "proxies")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.errs, "set PROJECT_ID or --project")
}

// waiting runs a command with --wait in the background.
func (r *rig) waiting(in string, args ...string) (errs *buffer, ended chan int) {
	var out buffer
	errs, ended = &buffer{}, make(chan int, 1)
	c := r.cli(r.store, in, &out, errs)
	go func() { ended <- c.run(r.t.Context(), append([]string{"--project", "p"}, append(args, "--wait")...)) }()
	return errs, ended
}

func (r *rig) sees(errs *buffer, text string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return contains(errs.String(), text) }, 10*time.Second, time.Millisecond, "waiting for %q", text)
}

func TestWhoStopsWaitingHearsThatTheChangeGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, stop := context.WithCancel(t.Context())
	errs := &buffer{}
	c := r.cli(r.store, document("a"), &buffer{}, errs)
	ended := make(chan int, 1)
	go func() { ended <- c.run(ctx, []string{"--project", "p", "apply", "-f", "-", "--wait"}) }()
	r.sees(errs, "0 of 1 done")
	stop()
	require.NotEqual(t, exitOK, <-ended)
	require.Contains(t, errs.String(), "stopped waiting; what was asked for is still under way")
	r.proxy("a")
}

func TestWaitingShowsHowFarThingsAre(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	errs, ended := r.waiting(document("a")+"---\n"+document("b"), "apply", "-f", "-")
	r.sees(errs, "0 of 2 done; b Pending: the plane has not seen it yet")
	r.ready("b")
	r.sees(errs, "1 of 2 done; a Pending: the plane has not seen it yet")
	r.ready("a")
	require.Equal(t, exitOK, <-ended)
	require.NotContains(t, errs.String(), "\x1b", "no colours and no moving cursor where no terminal is")

	errs, ended = r.waiting(document("a", "e2-micro", "e2-small"), "apply", "-f", "-")
	r.sees(errs, "waits for the VM that the new spec asks for")
	r.ready("a")
	require.Equal(t, exitOK, <-ended)

	errs, ended = r.waiting("", "rotate", "a")
	r.sees(errs, "waits for the fresh VM: the next run begins it")
	r.status("a", func(s *fleet.Status) { s.Replacing = "rotate" })
	r.sees(errs, "waits for the fresh VM: rotate")
	r.status("a", func(s *fleet.Status) { s.Endpoint.Incarnation = s.Incarnation + 1 })
	r.sees(errs, "the fresh VM serves; the VM before, ")
	r.ready("a")
	require.Equal(t, exitOK, <-ended)

	errs, ended = r.waiting("", "delete", "a")
	r.sees(errs, "a Deleting: the VM is deleted, then the document")
	require.NoError(t, r.store.RemoveProxy(t.Context(), r.proxy("a")))
	require.Equal(t, exitOK, <-ended)
}

func TestWaitingForWhatCannotComeEnds(t *testing.T) {
	t.Parallel()
	refused := func(s *fleet.Status) {
		s.Phase, s.Retry = fleet.PhaseFailed, &fleet.Retry{Class: "Permanent", Message: "no such machine type"}
	}
	t.Run("the cloud refuses", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.ok(document("a"), "apply", "-f", "-")
		r.status("a", refused)
		errs, ended := r.waiting(document("a", "e2-micro", "e2-small"), "apply", "-f", "-")
		r.sees(errs, "Failed: the cloud refuses it for good: Permanent: no such machine type")
		r.clock.Advance(staleFor) // by now that must be about the new spec
		require.Equal(t, exitFailed, <-ended)
		require.Contains(t, errs.String(), "a: will not become Ready: Failed")
	})
	t.Run("somebody deletes it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		errs, ended := r.waiting(document("a"), "apply", "-f", "-")
		r.sees(errs, "0 of 1 done")
		require.NoError(t, r.store.RemoveProxy(t.Context(), r.proxy("a")))
		require.Equal(t, exitFailed, <-ended)
		require.Contains(t, errs.String(), "it is gone")
	})
	t.Run("paused is as good as ready", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		_, ended := r.waiting(document("a", "maxLeases: 5", "paused: true"), "apply", "-f", "-")
		require.Equal(t, exitOK, <-ended)
	})
	t.Run("an interrupt", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		require.Equal(t, exitFailed, r.runOn(ctx, r.store, document("a"), "apply", "-f", "-", "--wait").code)
	})
}

// gone is a store that does not answer.
type gone struct{ store.Store }

func (gone) ListProxies(context.Context) ([]fleet.Proxy, error) { return nil, errGone }
func (gone) GetProxy(context.Context, string) (fleet.Proxy, error) {
	return fleet.Proxy{}, errGone
}

func TestAnOutageIsAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, command := range [][]string{{"get", "proxies"}, {"describe", "a"}, {"delete", "a"}, {"apply", "-f", "-"}} {
		got := r.runOn(t.Context(), gone{r.store}, document("a"), command...)
		require.Equal(t, exitFailed, got.code)
		require.Contains(t, got.errs, "no route to host")
		require.Empty(t, got.out)
	}
}
