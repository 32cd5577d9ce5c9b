package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/client"
)

// The exit codes of lease that are not the command's, as env and timeout have them.
const (
	exitNoLease       = 125
	exitNotExecutable = 126
	exitNoCommand     = 127
)

func (c *cli) leaseCommand() *cobra.Command {
	var f leaseFlags
	var target, sticky string
	cmd := &cobra.Command{
		Use:   "lease [flags] -- CMD [ARG...]",
		Short: "Run a command behind a leased proxy",
		Long: `Lease sets http_proxy, https_proxy, all_proxy and their upper case for CMD, renews the lease while CMD runs, and gives it back
with the outcome: ok when CMD succeeds, else error. It passes signals on and exits as CMD does; with 125 when there is no lease, 126
and 127 when CMD cannot be run.
` + authHelp,
		Example: "  proxyctl lease --label pool=news -- curl https://example.com/",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("which command? proxyctl lease -- CMD")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, command []string) error {
			req, err := f.request()
			if err != nil {
				return err
			}
			leases, err := f.client()
			if err != nil {
				return err
			}
			req.Target, req.StickyKey = target, sticky
			return c.lease(cmd.Context(), leases, req, command)
		},
	}
	f.add(cmd, 0)
	cmd.Flags().StringVar(&target, "target", "", "host that will be fetched, so that proxies it has banned are left out")
	cmd.Flags().StringVar(&sticky, "sticky", "", "the same proxy for the same key, where possible")
	cmd.Flags().SetInterspersed(false) // what follows CMD is CMD's
	return cmd
}

func (c *cli) lease(ctx context.Context, leases *client.Client, req client.Request, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		fmt.Fprintf(c.errs, "proxyctl: %s cannot be run: %v\n", printable(command[0]), cause(err))
		return exitError(notRun(err))
	}
	// A signal is for the command; the lease is kept until that has ended.
	keeping := context.WithoutCancel(ctx)
	held, err := leases.Hold(keeping, req)
	if err != nil {
		fmt.Fprintln(c.errs, "proxyctl: no lease:", why(err))
		return exitError(exitNoLease)
	}
	l := held.Lease()
	fmt.Fprintln(c.errs, "leased", printable(l.Proxy.Name))
	run := exec.Command(path, command[1:]...) //nolint:gosec // running it is what was asked for
	run.Args[0] = command[0]
	run.Stdin, run.Stdout, run.Stderr = c.in, c.out, c.errs
	run.Env = proxyEnv(os.Environ(), l.Endpoint.URL)
	err = c.runCommand(run, held)
	code, outcome := ended(err)
	if code == exitNotExecutable {
		fmt.Fprintf(c.errs, "proxyctl: %s cannot be run: %v\n", printable(command[0]), cause(err))
	}
	c.giveBack(keeping, held, outcome, req.Target)
	if code == exitOK {
		return nil
	}
	return exitError(code)
}

// giveBack releases; when it fails the lease ends by itself.
func (c *cli) giveBack(ctx context.Context, held *client.Held, outcome client.Outcome, target string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := held.Release(ctx, outcome, target); err != nil && !client.Ended(err) {
		fmt.Fprintln(c.errs, "proxyctl: the lease was not given back, it ends by itself:", why(err))
	}
}

// passed are the signals that the command gets, too.
func passed() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// runCommand runs it, passes signals on, and says when the lease is lost meanwhile. What a terminal's keys
// send reaches the command without us.
func (c *cli) runCommand(run *exec.Cmd, held *client.Held) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed()...)
	defer signal.Stop(signals)
	if err := run.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	passing := make(chan struct{})
	go func() {
		defer close(passing)
		lost := held.Lost()
		for {
			select {
			case <-lost:
				lost = nil
				fmt.Fprintln(c.errs, "proxyctl: the lease has ended while the command runs:", why(held.Err()))
			case s := <-signals:
				if fromKeys(s) && isTerminal(c.in) {
					continue
				}
				_ = run.Process.Signal(s)
			case <-done:
				return
			}
		}
	}()
	err := run.Wait()
	close(done)
	<-passing
	return err
}

func fromKeys(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// ended returns the exit code, and the outcome that is reported for it: none when a signal ended the
// command, which says nothing about the proxy.
func ended(err error) (code int, outcome client.Outcome) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitOK, client.OK
	case !errors.As(err, &exit):
		return exitNotExecutable, ""
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), ""
	}
	return exit.ExitCode(), client.Failed
}

// notRun tells a command that is not there from one that may not be run.
func notRun(err error) int {
	if errors.Is(err, fs.ErrPermission) {
		return exitNotExecutable
	}
	return exitNoCommand
}

// cause leaves out what quotes the command line.
func cause(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// proxyVariables are the names that programs look at; some at the lower case only, some at the upper.
func proxyVariables() []string {
	return []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}
}

// proxyEnv replaces the proxy variables. no_proxy stays as people set it.
func proxyEnv(env []string, proxy string) []string {
	names := proxyVariables()
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name) || name == envAPIKey // the command has no business with our key
	})
	for _, name := range names {
		out = append(out, name+"="+proxy)
	}
	return out
}
