// Package reconcile is the function that the scheduler calls every minute.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/health/pubsub"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/gce"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/provider/registry"
	"crawl.example.com/proxyfleet/pkg/reconcile"
)

func init() { functions.HTTP("Reconcile", app.Handler(Open)) }

// constructors are the types of providers that a providers file may name. Only this function links
// them.
func constructors() map[string]provider.Constructor {
	return map[string]provider.Constructor{"mock": mock.New, "gcp": gce.New}
}

// Open builds the function's handler. It fails with all faults of the providers file.
func Open(ctx context.Context, a *app.App) (http.Handler, error) {
	accounts, err := openProviders(ctx, a)
	if err != nil {
		return nil, err
	}
	publisher, err := openPublisher(ctx, a)
	if err != nil {
		return nil, err
	}
	r := reconcile.New(reconcile.Config{
		Store: a.Store, Providers: accounts, Secrets: a.Secrets, Prober: prober{health.NewFanout(publisher)},
		Metrics: reconcile.NewMetrics(a.Registry),
		Owner:   fleet.Owner(a.Config.ProjectID, a.Config.Database), Database: a.Config.Database,
		Timeout: a.Config.RunTimeout, Now: a.Now,
	})
	return &handler{run: r.Run, log: a.Log, now: a.Now}, nil
}

func openProviders(ctx context.Context, a *app.App) (map[string]reconcile.Account, error) {
	if a.Config.ProvidersConfig == "" {
		return nil, errors.New("PROVIDERS_CONFIG: must name the file that lists the providers; a fleet without Managed proxies has an empty list: []")
	}
	configs, built, err := registry.Load(ctx, a.Config.ProvidersConfig, constructors())
	if err != nil {
		return nil, fmt.Errorf("PROVIDERS_CONFIG: %w", err)
	}
	metrics := provider.NewMetrics(a.Registry)
	accounts := map[string]reconcile.Account{}
	for _, c := range configs {
		accounts[c.Name] = reconcile.Account{Provider: provider.WithMetrics(built[c.Name], c.Name, metrics), MaxInstances: c.MaxInstances}
	}
	return accounts, nil
}

func openPublisher(ctx context.Context, a *app.App) (health.Publisher, error) {
	if a.Publisher != nil {
		return a.Publisher, nil
	}
	p, err := pubsub.Open(ctx, a.Config.ProjectID, a.Config.ProbeTopic)
	if err != nil {
		return nil, fmt.Errorf("open the topic of PROBE_TOPIC: %w", err)
	}
	return p, nil
}
