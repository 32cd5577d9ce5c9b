package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func TestShellsCompleteCommandsNamesAndForms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(document("us-1")+"---\n"+document("us-2"), "apply", "-f", "-")
	for _, row := range []struct {
		typed []string
		want  []string
	}{
		{[]string{"des"}, []string{"describe"}},
		{[]string{"get", ""}, []string{"proxies"}},
		{[]string{"get", "proxies", ""}, []string{"us-1", "us-2"}},
		{[]string{"get", "proxies", "-o", ""}, []string{"table", "wide", "yaml", "json"}},
		{[]string{"describe", "u"}, []string{"us-1", "us-2"}},
		{[]string{"delete", "us-1", ""}, []string{"us-2"}},
		{[]string{"rotate", "us-2", ""}, []string{"us-1"}},
	} {
		out := r.ok("", append([]string{"__completeNoDesc"}, row.typed...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Equal(t, row.want, lines[:len(lines)-1], "%v", row.typed)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, r.ok("", "completion", shell), "proxyctl")
	}
}

func TestACompletionWithoutAStoreIsSilent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.runOn(t.Context(), gone{r.store}, "", "__completeNoDesc", "describe", "")
	require.Equal(t, exitOK, got.code)
	require.NotContains(t, got.out, "no route")
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	help := r.ok("", "--help")
	for _, command := range []string{"apply", "get", "describe", "delete", "rotate", "pause", "resume", "validate", "doctor", "lease", "gateway", "completion"} {
		require.Contains(t, help, "\n  "+command+" ")
		require.Contains(t, r.ok("", command, "--help"), "Usage:")
	}
}
