package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// screen is what a person sees: all that was written to a terminal of the kernel's.
type screen struct {
	tty  *os.File
	seen buffer
}

// openScreen opens a pseudo terminal that is so many characters wide.
func openScreen(t *testing.T, width uint16) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	var unlock, number int32
	ioctl(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	ioctl(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	size := [4]uint16{24, width}
	ioctl(t, tty, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	s := &screen{tty: tty}
	t.Cleanup(func() { _ = tty.Close() })
	go func() {
		chunk := make([]byte, 4096)
		for {
			n, err := master.Read(chunk)
			_, _ = s.seen.Write(chunk[:n])
			if err != nil {
				return
			}
		}
	}()
	return s
}

func ioctl(t *testing.T, f *os.File, request uintptr, arg unsafe.Pointer) {
	t.Helper()
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg))
	require.Zero(t, errno, "ioctl %#x", request)
}

func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.seen.String(), text) }, 10*time.Second, time.Millisecond, "%q in %q", text, s.seen.String())
}

func TestOnATerminalProgressIsOneLineThatGoesAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := openScreen(t, 200)
	var out buffer
	c := r.cli(r.store, document("a"), &out, &buffer{})
	c.errs = s.tty
	ended := make(chan int, 1)
	go func() { ended <- c.run(t.Context(), []string{"--project", "p", "apply", "-f", "-", "--wait"}) }()
	s.shows(t, "\r\x1b[2K0 of 1 done; a Pending: the plane has not seen it yet")
	r.ready("a")
	require.Equal(t, exitOK, <-ended)
	s.shows(t, "not seen it yet\r\x1b[2K")
	require.NotContains(t, s.seen.String(), "\n")
}

func TestProgressFitsTheTerminal(t *testing.T) {
	t.Parallel()
	s := openScreen(t, 20)
	p := newProgress(s.tty)
	p.show("1 of 2 done; b Pending: a long reason")
	s.shows(t, "\r\x1b[2K1 of 2 done; b Pen…")
	p.show("2 of 2")
	p.end()
	s.shows(t, "…\r\x1b[2K2 of 2\r\x1b[2K")
}

func TestColoursAreForTerminalsUnlessSomebodySaysNo(t *testing.T) {
	r := newRig(t)
	r.ok(document("a"), "apply", "-f", "-")
	r.ready("a")
	for _, no := range []string{"", "1"} {
		t.Setenv("NO_COLOR", no)
		s := openScreen(t, 200)
		c := r.cli(r.store, "", &buffer{}, &buffer{})
		c.out = s.tty
		require.Equal(t, exitOK, c.run(t.Context(), []string{"--project", "p", "get", "proxies"}))
		s.shows(t, "Managed")
		require.Equal(t, no == "", strings.Contains(s.seen.String(), "\x1b[32mReady\x1b[0m"))
	}
}
