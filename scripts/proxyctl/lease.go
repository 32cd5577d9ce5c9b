package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/scripts/proxyctl/leaseclient"
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
			client, err := f.client()
			if err != nil {
				return err
			}
			defer client.Close()
			req.Target, req.StickyKey = target, sticky
			return c.lease(cmd.Context(), client, req, command)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&target, "target", "", "host that will be fetched, so that proxies it has banned are left out")
	cmd.Flags().StringVar(&sticky, "sticky", "", "the same proxy for the same key, where possible")
	cmd.Flags().SetInterspersed(false) // what follows CMD is CMD's
	return cmd
}

func (c *cli) lease(ctx context.Context, client *leaseclient.Client, req leaseclient.Request, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		fmt.Fprintf(c.errs, "proxyctl: %s cannot be run: %v\n", printable(command[0]), cause(err))
		return exitError(notRun(err))
	}
	l, err := client.Acquire(ctx, req)
	if err != nil {
		fmt.Fprintln(c.errs, "proxyctl: no lease:", printable(err.Error()))
		return exitError(exitNoLease)
	}
	fmt.Fprintf(c.errs, "leased %s\n", printable(l.Proxy.Name))
	run := exec.Command(path, command[1:]...) //nolint:gosec // running it is what was asked for
	run.Args[0] = command[0]
	run.Stdin, run.Stdout, run.Stderr = c.in, c.out, c.errs
	run.Env = proxyEnv(os.Environ(), l.Endpoint.URL)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		keeper{client: client, ttl: time.Duration(req.TTLSeconds) * time.Second, now: c.now, say: c.errs}.keep(renewing, l)
	}()
	err = c.runCommand(run)
	stop()
	<-renewed
	code, outcome := ended(err)
	if err != nil && code == exitNotExecutable {
		fmt.Fprintf(c.errs, "proxyctl: %s cannot be run: %v\n", printable(command[0]), cause(err))
	}
	c.giveBack(ctx, client, l, outcome, req.Target)
	if code == exitOK {
		return nil
	}
	return exitError(code)
}

// giveBack releases also after a signal; when it fails the lease ends by itself.
func (c *cli) giveBack(ctx context.Context, client *leaseclient.Client, l leaseclient.Lease, outcome, target string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := client.Release(ctx, l.ID, outcome, target)
	var refusal *leaseclient.Refusal
	if err != nil && !(errors.As(err, &refusal) && refusal.Ended()) {
		fmt.Fprintln(c.errs, "proxyctl: the lease was not given back, it ends by itself:", printable(err.Error()))
	}
}

// passed are the signals that the command gets, too.
func passed() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// runCommand runs it and passes signals on. What a terminal's keys send reaches the command without us.
func (c *cli) runCommand(run *exec.Cmd) error {
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
		for {
			select {
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
func ended(err error) (code int, outcome string) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitOK, "ok"
	case !errors.As(err, &exit):
		return exitNotExecutable, ""
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), ""
	}
	return exit.ExitCode(), "error"
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

// keeper renews a lease while it is used.
type keeper struct {
	client *leaseclient.Client
	ttl    time.Duration
	now    func() time.Time
	say    io.Writer
}

// retryRenewal is how soon a renewal that failed is tried again.
const retryRenewal = 2 * time.Second

// keep renews at half of the remaining time until ctx ends or the lease has.
func (k keeper) keep(ctx context.Context, l leaseclient.Lease) {
	next := l.ExpireTime.Sub(k.now()) / 2
	leaving := false
	for {
		timer := time.NewTimer(max(next, time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		renewed, err := k.client.Renew(ctx, l.ID, k.ttl)
		var refusal *leaseclient.Refusal
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &refusal) && refusal.Ended():
			fmt.Fprintln(k.say, "proxyctl: the lease has ended while the command runs:", printable(err.Error()))
			return
		case err != nil:
			next = retryRenewal
			continue
		}
		next = renewed.ExpireTime.Sub(k.now()) / 2
		if renewed.Draining && !leaving {
			leaving = true
			fmt.Fprintf(k.say, "proxyctl: %s is on its way out, the lease ends at %s\n", printable(l.Proxy.Name), renewed.ExpireTime.UTC().Format(time.RFC3339))
		}
	}
}
