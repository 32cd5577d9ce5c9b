package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"crawl.example.com/proxyfleet/functions/health"
	"crawl.example.com/proxyfleet/functions/lease"
	"crawl.example.com/proxyfleet/functions/reconcile"
	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// upInProcess serves the three functions from this process over one memory store.
func (p *plane) upInProcess(ctx context.Context) error {
	s := memory.New(time.Now)
	if err := p.fleet.seed(ctx, s); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.dir, "plane.log"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	p.onClose(func() { _ = log.Close() })
	config, err := app.LoadConfig(p.inProcessEnv)
	if err != nil {
		return err
	}
	a := app.New(config, s, app.Secrets(config), app.NewLogger(log, "info"))
	push := &pusher{}
	a.Publisher = push
	for _, f := range []struct {
		name string
		open app.Opener
		port int
		url  *string
	}{
		{targetHealth, health.Open, 0, &p.state.HealthURL},
		{targetReconcile, reconcile.Open, 0, &p.state.ReconcileURL},
		{targetLease, lease.Open, p.opts.Port, &p.state.LeaseURL},
	} {
		h, err := f.open(ctx, a)
		if err != nil {
			return fmt.Errorf("open function %s: %w", f.name, err)
		}
		if *f.url, err = p.listen(f.port, a.Wrap(h)); err != nil {
			return fmt.Errorf("serve function %s: %w", f.name, err)
		}
	}
	push.url = p.state.HealthURL
	metrics, err := p.listen(0, a.MetricsHandler())
	p.state.MetricsURLs["plane"] = metrics + "/metrics"
	return err
}

// inProcessEnv is the environment of the functions where there are no emulators.
func (p *plane) inProcessEnv(name string) string {
	switch name {
	case "PROJECT_ID":
		return p.state.ProjectID
	case "PROVIDERS_CONFIG":
		return p.fleet.providersFile
	case "SECRETS_DIR":
		return p.fleet.secretsDir
	case "EXTRA_CA_FILE":
		return p.state.OriginCAFile
	case "METRICS_PORT":
		return "off"
	case "VERSION":
		return "local"
	}
	return ""
}

func (p *plane) listen(port int, h http.Handler) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	p.onClose(func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// pusher plays Pub/Sub in one process: it posts each message to the health function in the envelope
// of a push subscription, at once and once.
type pusher struct{ url string }

// Publish implements app.Publisher. It reports success as soon as the message is on its way, as a
// topic would.
func (p *pusher) Publish(_ context.Context, data []byte) func(context.Context) error {
	go p.push(data)
	return func(context.Context) error { return nil }
}

// pushTimeout is the longest acknowledgement deadline of the deployed subscription.
const pushTimeout = 120 * time.Second

func (p *pusher) push(data []byte) {
	body, err := json.Marshal(map[string]any{
		"subscription": "projects/" + localProject + "/subscriptions/" + probeTopic + "-push",
		"message": map[string]any{
			"data": base64.StdEncoding.EncodeToString(data), "messageId": strconv.FormatInt(time.Now().UnixNano(), 10),
			"publishTime": time.Now().UTC().Format(time.RFC3339Nano),
		},
	})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pushTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
