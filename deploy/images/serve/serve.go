// Package serve runs one function as a program that ends in good order.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Cloud Run kills an instance ten seconds after it was told to end. Requests have the first part of it
// to end by themselves; then their contexts are cancelled, and a reconcile run stores its cursor and
// frees its lock in what is left.
const (
	grace = 5 * time.Second
	last  = 4 * time.Second
)

// Main serves handler on PORT, 8080 if that is not set, until the process is told to end. It does not
// return.
//
// The functions framework would kill requests under way: it has no way to shut its server down. That is
// why our images do without its main. The handler is the one that the framework would serve.
func Main(handler http.HandlerFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", port))
	if err == nil {
		err = Until(ctx, l, handler, grace, last)
	}
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error("function ended", "severity", "ERROR", "error", err.Error())
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
	os.Exit(0)
}

// Until serves handler on l until ctx is done. Then it takes no more requests, waits for grace, cancels
// the contexts of the requests that are still under way, and waits for last. Its error says whether
// some had to be dropped even then, or what else ended it.
func Until(ctx context.Context, l net.Listener, handler http.Handler, grace, last time.Duration) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	mux := http.NewServeMux() // cleans paths as the framework does
	mux.Handle("/", handler)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	timer := time.AfterFunc(grace, cancel)
	defer timer.Stop()
	bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), grace+last)
	defer stop()
	if err := server.Shutdown(bounded); err != nil {
		return errors.Join(fmt.Errorf("requests were still under way: %w", err), server.Close())
	}
	return nil
}
