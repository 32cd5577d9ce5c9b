// Command exec runs a command with the Firestore and Pub/Sub emulators up, and stops them when it ends.
//
//	go run ./emulator/exec -- go test ./...
//
// Emulators that FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST name already are used as they are.
// Where Java or the Google Cloud CLI is missing it says so and runs the command without, unless CI
// is set: then it fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"crawl.example.com/proxyfleet/emulator/gcloud"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: exec -- COMMAND [ARG...]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, args)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "exec:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	env, stop, err := start(ctx)
	defer stop()
	if err != nil {
		if os.Getenv("CI") != "" {
			return 1, fmt.Errorf("the emulators are needed where CI is set: %w", err)
		}
		fmt.Fprintf(os.Stderr, "exec: WITHOUT EMULATORS, their tests will be skipped: %v\n", err)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// start starts both emulators side by side. stop may be called whatever the error.
func start(ctx context.Context) (env []string, stop func(), err error) {
	var running []*gcloud.Emulator
	stop = func() {
		var wg sync.WaitGroup
		for _, e := range running {
			wg.Go(e.Stop)
		}
		wg.Wait()
	}
	type emulator struct {
		variable string
		start    func(context.Context) (*gcloud.Emulator, error)
	}
	in, missing := gcloud.Find()
	var wanted []emulator
	for _, e := range []emulator{{"FIRESTORE_EMULATOR_HOST", in.StartFirestore}, {"PUBSUB_EMULATOR_HOST", in.StartPubSub}} {
		if os.Getenv(e.variable) == "" {
			wanted = append(wanted, e)
		}
	}
	if len(wanted) == 0 {
		return nil, stop, nil
	}
	if missing != nil {
		return nil, stop, missing
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, w := range wanted {
		wg.Go(func() {
			e, startErr := w.start(ctx)
			mu.Lock()
			defer mu.Unlock()
			if startErr != nil {
				err = errors.Join(err, startErr)
				return
			}
			running = append(running, e)
			env = append(env, w.variable+"="+e.Host)
		})
	}
	wg.Wait()
	return env, stop, err
}
