package app

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MetricsHandler serves the App's metrics at every path.
func (a *App) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{})
}

// ServeMetrics listens on the metrics port and serves /metrics until the process ends. The framework
// keeps its own mux to itself, hence a listener beside it. It does nothing when metrics are off.
func (a *App) ServeMetrics() error {
	if a.Config.MetricsPort < 0 {
		return nil
	}
	host := "127.0.0.1" // off Cloud Run nobody but this machine is meant to see them
	if a.Config.OnCloudRun {
		host = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(a.Config.MetricsPort)))
	if err != nil {
		return fmt.Errorf("listen for metrics: METRICS_PORT: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.MetricsHandler())
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(l) }()
	return nil
}
