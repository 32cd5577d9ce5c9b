package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	_ "crawl.example.com/proxyfleet" // registers the functions

	"crawl.example.com/proxyfleet/emulator/gcloud"
	"crawl.example.com/proxyfleet/emulator/proc"
)

// serveVerb is how this program starts itself again as one function.
const serveVerb = "serve-function"

// serveFunction serves FUNCTION_TARGET on PORT as the buildpack's main does, on loopback only.
func serveFunction() error {
	return funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT"))
}

// The names that the functions are registered by.
const (
	targetReconcile = "Reconcile"
	targetHealth    = "Health"
	targetLease     = "Lease"
)

const (
	startTimeout = 60 * time.Second
	// functionGrace is how long a function may take to end; the framework ends at once.
	functionGrace = 5 * time.Second
)

// upOnEmulators starts the cloud's emulators and each function as a process of its own.
func (p *plane) upOnEmulators(ctx context.Context, install gcloud.Install) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.startEmulators(ctx, install); err != nil {
		return err
	}
	ports := map[string]int{targetLease: p.opts.Port}
	for _, target := range []string{targetReconcile, targetHealth} {
		port, err := proc.FreePort()
		if err != nil {
			return err
		}
		ports[target] = port
	}
	p.state.ReconcileURL, p.state.HealthURL = localURL(ports[targetReconcile]), localURL(ports[targetHealth])
	s, err := p.openFirestore(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := p.fleet.seed(ctx, s); err != nil {
		return err
	}
	if err := p.createSubscriptions(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i, target := range []string{targetReconcile, targetHealth, targetLease} {
		process, err := p.startFunction(target, ports[target])
		if err != nil {
			return err
		}
		wg.Go(func() {
			errs[i] = process.WaitReady(ctx, func(ctx context.Context) error { return answers(ctx, localURL(ports[target])) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// startEmulators starts the two emulators side by side, unless the environment names running ones.
func (p *plane) startEmulators(ctx context.Context, install gcloud.Install) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	start := func(variable string, host *string, start func(context.Context) (*gcloud.Emulator, error)) {
		if *host = os.Getenv(variable); *host != "" {
			return
		}
		wg.Go(func() {
			e, err := start(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			*host = e.Host
			p.watch(e.Process, e.Stop)
		})
	}
	start("FIRESTORE_EMULATOR_HOST", &p.state.FirestoreHost, install.StartFirestore)
	start("PUBSUB_EMULATOR_HOST", &p.state.PubSubHost, install.StartPubSub)
	wg.Wait()
	return errors.Join(errs...)
}

// watch has the plane fail when a process ends that should not, and stops it at the end.
func (p *plane) watch(process *proc.Process, stop func()) {
	p.onClose(stop)
	p.state.Pids = append(p.state.Pids, process.Pid())
	go func() {
		<-process.Done()
		if err := process.Err(); err != nil {
			p.fail(err)
		}
	}()
}

func (p *plane) startFunction(target string, port int) (*proc.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	metrics, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.dir, target+".log"))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	p.onClose(func() { _ = log.Close() })
	process, err := proc.Start(proc.Command{
		Name: "function " + target, Path: self, Args: []string{serveVerb}, Out: log,
		Env: append(p.environment(), "FUNCTION_TARGET="+target, "PORT="+strconv.Itoa(port), "METRICS_PORT="+strconv.Itoa(metrics)),
	})
	if err != nil {
		return nil, err
	}
	p.state.MetricsURLs[target] = localURL(metrics) + "/metrics"
	p.watch(process, func() { process.Stop(functionGrace) })
	return process, nil
}

// environment is what the functions are configured with, whatever the caller's own environment says.
func (p *plane) environment() []string {
	return []string{
		"PROJECT_ID=" + p.state.ProjectID,
		"FIRESTORE_DATABASE=(default)",
		"FIRESTORE_EMULATOR_HOST=" + p.state.FirestoreHost,
		"PUBSUB_EMULATOR_HOST=" + p.state.PubSubHost,
		"PROVIDERS_CONFIG=" + p.fleet.providersFile,
		"SECRETS_DIR=" + p.fleet.secretsDir,
		"EXTRA_CA_FILE=" + p.state.OriginCAFile,
		"PROBE_TOPIC=" + probeTopic,
		"VERSION=local", "AUTH=", "API_KEYS_SECRET=", "K_SERVICE=", "RUN_TIMEOUT=", "LOG_LEVEL=",
	}
}

// answers checks that something serves HTTP at url; what it answers does not matter yet.
func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
