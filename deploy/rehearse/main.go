// Command rehearse runs a command with the real gcloud turned to a stand-in for Google Cloud on this
// machine, prints what it asked for, and fails when the stand-in could not answer it.
//
//	go run ./deploy/rehearse -- scripts/deploy.sh --project demo-project --region us-central1
//
// The tests beside it rehearse the whole deploy.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"crawl.example.com/proxyfleet/deploy/rehearse/standin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: rehearse [--] COMMAND [ARG...]")
		os.Exit(2)
	}
	if err := rehearse(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, "rehearse:", err)
		os.Exit(1)
	}
}

func rehearse(ctx context.Context, args []string) (err error) {
	dir, err := os.MkdirTemp("", "rehearse")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	docs, err := descriptions(ctx)
	if err != nil {
		return err
	}
	s, err := open(ctx, dir, standin.Options{Discovery: docs})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.env, os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	for _, r := range s.server.Requests() {
		what := r.Method + " " + r.Host + r.Path
		if len(r.Methods) > 0 {
			what = r.Methods[0] + " " + r.Path
		}
		fmt.Fprintln(os.Stderr, strings.TrimSpace(fmt.Sprintf("%d %s %s", r.Status, what, r.Error)))
		if r.Unknown {
			err = errors.Join(err, fmt.Errorf("%s: %s", what, r.Error))
		}
	}
	return err
}
