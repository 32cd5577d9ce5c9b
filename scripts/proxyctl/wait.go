package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// errWaited says that --wait gave up.
var errWaited = errors.New("gave up waiting; the change itself was made")

// waiter is the --wait of a command.
type waiter struct {
	on      bool
	timeout time.Duration
}

func (w *waiter) addFlags(cmd *cobra.Command, until string) {
	cmd.Flags().BoolVar(&w.on, "wait", false, "wait "+until)
	cmd.Flags().DurationVar(&w.timeout, "timeout", 15*time.Minute, "how long to wait")
}

// condition looks at a proxy, nil when it does not exist, and says how far it is. An error ends the
// waiting.
type condition func(p *fleet.Proxy, now time.Time) (done bool, progress string, err error)

// wait looks until the condition holds for every name, showing how far things are.
func (c *cli) wait(ctx context.Context, w waiter, names []string, done condition) error {
	if !w.on || len(names) == 0 {
		return nil
	}
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	progress := newProgress(c.errs)
	defer progress.end()
	for {
		waiting, line, err := c.look(ctx, s, names, done)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && waiting == 0 {
			return nil
		}
		if err == nil {
			progress.show(fmt.Sprintf("%d of %d done; %s", len(names)-waiting, len(names), line))
		}
		timer := time.NewTimer(c.poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%w: %s", errWaited, line)
			}
			return fmt.Errorf("stopped waiting; what was asked for is still under way: %w", ctx.Err())
		case <-timer.C:
		}
	}
}

func (c *cli) look(ctx context.Context, s store.Store, names []string, done condition) (waiting int, line string, err error) {
	for _, name := range names {
		p, err := s.GetProxy(ctx, name)
		at := &p
		if errors.Is(err, store.ErrNotFound) {
			at = nil
		} else if err != nil {
			return 0, "", err
		}
		ok, progress, err := done(at, c.now())
		if err != nil {
			return 0, "", fmt.Errorf("%s: %w", name, err)
		}
		if !ok {
			waiting++
			line = name + " " + printable(progress)
		}
	}
	return waiting, line, nil
}

// progress is one line that changes; where nobody watches, a line for each change.
type progress struct {
	w        io.Writer
	terminal bool
	last     string
}

func newProgress(w io.Writer) *progress { return &progress{w: w, terminal: isTerminal(w)} }

func (p *progress) show(line string) {
	if line == p.last {
		return
	}
	p.last = line
	if p.terminal {
		// A line that is wrapped could not be taken back.
		if text := []rune(line); len(text) >= columns(p.w) {
			line = string(text[:columns(p.w)-2]) + "…"
		}
		fmt.Fprintf(p.w, "\r\x1b[2K%s", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

func (p *progress) end() {
	if p.terminal && p.last != "" {
		fmt.Fprint(p.w, "\r\x1b[2K")
	}
}
