// Package health is the function that Pub/Sub pushes probe messages to.
package health

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/health"
)

func init() { functions.HTTP("Health", app.Handler(Open)) }

// Open builds the function's handler.
func Open(_ context.Context, a *app.App) (http.Handler, error) {
	roots, err := authorities(a.Config.ExtraCAFile)
	if err != nil {
		return nil, err
	}
	metrics := health.NewMetrics(a.Registry)
	sweeper := health.NewSweeper(health.Deps{
		Store: a.Store, Secrets: a.Secrets, Prober: &health.Prober{RootCAs: roots, Now: a.Now},
		Metrics: metrics, Log: a.Log, Now: a.Now,
	})
	return &handler{sweep: sweeper.Sweep, metrics: metrics, log: a.Log, now: a.Now}, nil
}

// authorities are the system's and those of a PEM file; nil, which means the system's, without one.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read EXTRA_CA_FILE: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's authorities: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read EXTRA_CA_FILE: %s holds no certificate", file)
	}
	return roots, nil
}
