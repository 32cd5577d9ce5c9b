// Package lease is the function that crawlers and people call.
package lease

import (
	"context"
	"errors"
	"net/http"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/prometheus/client_golang/prometheus"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/console"
	"crawl.example.com/proxyfleet/pkg/lease"
)

func init() { functions.HTTP("Lease", app.Handler(Open)) }

// Open builds the function's handler. On Cloud Run it refuses to serve callers that nobody knows.
func Open(ctx context.Context, a *app.App) (http.Handler, error) {
	auth, err := authenticator(ctx, a)
	if err != nil {
		return nil, err
	}
	s := &lease.Server{
		Service: lease.New(lease.Deps{Store: a.Store, Secrets: a.Secrets, Metrics: lease.NewMetrics(a.Registry), Log: a.Log, Now: a.Now}),
		Auth:    auth,
		Version: a.Config.Version,
		Console: console.New(console.Config{
			Store: a.Store, Version: a.Config.Version, Fleet: a.Config.ProjectID + " " + a.Config.Database, Now: a.Now,
			Refusals: func() map[string]int { return refusals(a.Registry) },
		}),
	}
	return s.Handler(), nil
}

func authenticator(ctx context.Context, a *app.App) (lease.Authenticator, error) {
	switch a.Config.Auth {
	case app.AuthIAM:
		return lease.IAM{}, nil
	case app.AuthAPIKeys:
		payload, err := a.Secrets.Resolve(ctx, a.Config.APIKeysSecret, "")
		if err != nil {
			return nil, err
		}
		if _, err := lease.ParseAPIKeys(payload); err != nil {
			return nil, err
		}
		return lease.APIKeys{Secrets: a.Secrets, Secret: a.Config.APIKeysSecret}, nil
	}
	if a.Config.OnCloudRun {
		return nil, errors.New("AUTH: must be iam or apikeys on Cloud Run: the lease function hands out credentials")
	}
	return nil, nil
}

// refusals reads the counter of refused leases back.
func refusals(g prometheus.Gatherer) map[string]int {
	out := map[string]int{}
	families, err := g.Gather()
	if err != nil {
		return out
	}
	for _, f := range families {
		if f.GetName() != "proxyfleet_leases_refused_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				out[l.GetValue()] += int(m.GetCounter().GetValue())
			}
		}
	}
	return out
}
