// Command emulator runs the whole plane on this machine: the cloud's emulators, the three functions,
// the scheduler, an origin to crawl and a sample fleet.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	Store     string
	Port      int
	Tick      time.Duration
	Specs     string
	Providers string
	State     string
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveVerb {
		fmt.Fprintln(os.Stderr, serveFunction())
		os.Exit(1)
	}
	opts, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, opts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "proxyfleet:", err)
		stop()
		os.Exit(1)
	}
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("emulator", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.Store, "store", "auto", "auto, firestore (the emulators of the Google Cloud CLI) or memory (one process)")
	f.IntVar(&o.Port, "port", 8080, "port of the lease function; all others are free ones")
	f.DurationVar(&o.Tick, "tick", 5*time.Second, "time between two runs of reconcile; at least 100ms")
	f.StringVar(&o.Specs, "specs", "", "file or folder of Proxy manifests instead of the sample fleet")
	f.StringVar(&o.Providers, "providers", "", "providers file instead of the sample one")
	f.StringVar(&o.State, "state", "", "file to write what was started to, as JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if err := o.check(f.Args()); err != nil {
		fmt.Fprintln(out, "proxyfleet:", err)
		return o, err
	}
	return o, nil
}

func (o options) check(rest []string) error {
	var faults []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	add(len(rest) > 0, "unexpected argument %q: there are flags only, see --help", rest)
	add(o.Store != "auto" && o.Store != storeFirestore && o.Store != storeMemory, "--store: %q: must be auto, firestore or memory", o.Store)
	add(o.Port < 0 || o.Port > 65535, "--port: %d: must be between 0 and 65535 (0: any free one)", o.Port)
	add(o.Tick < 100*time.Millisecond, "--tick: %s: must be at least 100ms", o.Tick)
	return errors.Join(faults...)
}
