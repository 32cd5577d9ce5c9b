// Package app is what every function shares: configuration, store, secrets, logging, metrics and the HTTP adapter.
package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"crawl.example.com/proxyfleet/pkg/secret"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// App is what a function is opened with. Its parts are shared by all requests of the process.
type App struct {
	Config   Config
	Log      *slog.Logger
	Store    store.Store
	Secrets  secret.Resolver
	Registry *prometheus.Registry
	// Publisher is set where everything runs in one process; else nil, and functions/reconcile
	// publishes to Pub/Sub.
	Publisher Publisher
	Now       func() time.Time
}

// Publisher sends one message and returns at once; wait reports whether it was taken.
type Publisher interface {
	Publish(ctx context.Context, data []byte) (wait func(context.Context) error)
}

// New assembles an App around a store; for callers that bring their own, such as tests and the
// local plane. log may be nil: then logs go to standard output.
func New(c Config, s store.Store, secrets secret.Resolver, log *slog.Logger) *App {
	if log == nil {
		log = NewLogger(os.Stdout, c.LogLevel)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &App{Config: c, Log: log, Store: s, Secrets: secrets, Registry: reg, Now: time.Now}
}

// Open reads the environment and opens what it names.
func Open(ctx context.Context, getenv func(string) string) (*App, error) {
	c, err := LoadConfig(getenv)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	s, err := firestore.Open(ctx, c.ProjectID, c.Database)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return New(c, s, Secrets(c), nil), nil
}
