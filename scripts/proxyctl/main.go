// Command proxyctl is the operators' tool: it writes and explains Proxy documents.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/store"
)

// The exit codes.
const (
	exitOK       = 0
	exitFailed   = 1 // what was asked for did not happen; the message says why
	exitUsage    = 2
	exitNotFound = 3 // a named proxy does not exist
	exitConflict = 4 // somebody else changed it meanwhile; look and try again
	exitTimeout  = 5 // --wait gave up; the change itself was made
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, openFirestore)
	stop()
	os.Exit(code)
}

// run runs one command line; open is how the store is reached when a command needs it.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer, open opener) int {
	return (&cli{in: in, out: out, errs: errs, open: open, now: time.Now, poll: time.Second}).run(ctx, args)
}

func (c *cli) run(ctx context.Context, args []string) int {
	defer c.close()
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.errs)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit): // said already
		return int(exit)
	}
	fmt.Fprintln(c.errs, "proxyctl:", printableLines(err.Error()))
	return codeOf(err)
}

// exitError ends the program with a code and no further word.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func codeOf(err error) int {
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, store.ErrNotFound):
		return exitNotFound
	case errors.Is(err, store.ErrConflict):
		return exitConflict
	case errors.Is(err, errWaited):
		return exitTimeout
	}
	return exitFailed
}

// cli is what all commands share.
type cli struct {
	in        io.Reader
	out, errs io.Writer
	open      opener
	now       func() time.Time
	poll      time.Duration // how often --wait and -w look
	colours   bool          // also where no terminal is

	project, database string
	opened            store.Store
	closeStore        func() error
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "proxyctl",
		Short: "Write, watch and explain a fleet of crawl proxies",
		Long: `proxyctl writes Proxy documents into Firestore with your own rights and explains what became of them.
It reads PROJECT_ID and FIRESTORE_DATABASE, and talks to an emulator where FIRESTORE_EMULATOR_HOST is set.

Exit codes: 0 done, 1 failed, 2 usage, 3 no such proxy, 4 changed meanwhile, 5 --wait gave up. The command lease has its own.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			unknown := fmt.Errorf("unknown command %q; see proxyctl --help", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				unknown = fmt.Errorf("unknown command %q: did you mean %s?", args[0], strings.Join(near, " or "))
			}
			return usageError{unknown}
		},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&c.project, "project", os.Getenv("PROJECT_ID"), "Google Cloud project (PROJECT_ID)")
	root.PersistentFlags().StringVar(&c.database, "database", envOr("FIRESTORE_DATABASE", "(default)"), "Firestore database (FIRESTORE_DATABASE)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(c.validateCommand(), c.applyCommand(), c.getCommand(), c.describeCommand(), c.deleteCommand(), c.rotateCommand(),
		c.pauseCommand(), c.resumeCommand(), c.doctorCommand(), c.leaseCommand(), c.gatewayCommand())
	root.SuggestionsMinimumDistance = 2
	for _, cmd := range root.Commands() {
		if args := cmd.Args; args != nil {
			cmd.Args = func(cmd *cobra.Command, given []string) error {
				if err := args(cmd, given); err != nil {
					return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
				}
				return nil
			}
		}
	}
	return root
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
