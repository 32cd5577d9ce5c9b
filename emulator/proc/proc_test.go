package proc

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	p, err := Start(Command{Name: "child", Path: sh, Args: []string{"-c", script}, Env: []string{"GREETING=hello"}, Out: &bytes.Buffer{}})
	require.NoError(t, err)
	t.Cleanup(func() { p.Stop(0) })
	return p
}

func TestEndOfAChildIsReportedWithItsLastWords(t *testing.T) {
	t.Parallel()
	p := shell(t, "echo $GREETING and goodbye; exit 3")
	<-p.Done()
	require.ErrorContains(t, p.Err(), "child ended: exit status 3")
	require.ErrorContains(t, p.Err(), "hello and goodbye")
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	// The shell and its child both ignore the polite signal.
	p := shell(t, `trap "" TERM; sleep 600 & echo started; wait`)
	require.NoError(t, p.WaitReady(t.Context(), func(context.Context) error {
		if !strings.Contains(p.tail.String(), "started") {
			return errors.New("not yet")
		}
		return nil
	}))
	p.Stop(0)
	require.NoError(t, p.Err(), "a child that we stopped has not failed")
	require.Eventually(t, func() bool { return syscall.Kill(-p.Pid(), 0) != nil }, 5*time.Second, 10*time.Millisecond)
	p.Stop(time.Second)
}

func TestWaitReadyGivesUpWhenTheChildEnds(t *testing.T) {
	t.Parallel()
	p := shell(t, "echo no luck; exit 1")
	err := p.WaitReady(t.Context(), func(context.Context) error { return errors.New("closed") })
	require.ErrorContains(t, err, "no luck")
}

func TestWaitReadyGivesUpInTime(t *testing.T) {
	t.Parallel()
	p := shell(t, "sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.WaitReady(ctx, func(context.Context) error { return errors.New("port is closed") })
	require.ErrorContains(t, err, "child is not ready: port is closed")
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var tl tail
	for range 100 {
		_, _ = tl.Write([]byte("0123456789"))
	}
	_, _ = tl.Write([]byte("end"))
	require.Len(t, tl.String(), tailBytes)
	require.True(t, strings.HasSuffix(tl.String(), "789end"))
}
