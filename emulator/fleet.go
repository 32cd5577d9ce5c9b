package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/emulator/proc"
	"crawl.example.com/proxyfleet/functions/reconcile"
	"crawl.example.com/proxyfleet/pkg/manifest"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

//go:embed samples/proxies.yaml samples/providers.yaml
var sampleFiles embed.FS

// samples are the fleet that a local plane starts with: the samples, or what the flags name.
type samples struct {
	proxies       []manifest.Item
	providersFile string
	secretsDir    string
}

// The credentials of the sample fleet's mock VMs; see samples/providers.yaml.
const sampleCredentials = "crawler:p@ss/word"

// prepareFleet reads and checks specs and providers before anything is started for them.
func (p *plane) prepareFleet(ctx context.Context) (samples, error) {
	var s samples
	replace, err := p.sampleValues()
	if err != nil {
		return s, err
	}
	s.secretsDir = filepath.Join(p.dir, "secrets")
	if err := os.Mkdir(s.secretsDir, 0o700); err != nil {
		return s, err
	}
	for name, secret := range map[string]string{ // those that the README's manifest names
		"proxy-auth":       fmt.Sprintf("{%q: %q}\n", "basic", sampleCredentials),
		"proxy-cloud-init": `{"user-data": "#cloud-config"}`,
	} {
		if err := os.WriteFile(filepath.Join(s.secretsDir, name), []byte(secret), 0o600); err != nil {
			return s, err
		}
	}
	if s.providersFile, err = p.prepareProviders(ctx, replace); err != nil {
		return s, err
	}
	s.proxies, err = p.readSpecs(replace)
	return s, err
}

// sampleValues starts the External proxy of the samples and returns what the samples' variables
// stand for.
func (p *plane) sampleValues() (*strings.Replacer, error) {
	external, err := p.startExternalProxy()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(external)
	if err != nil {
		return nil, err
	}
	managed, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	return strings.NewReplacer("${ORIGIN_URL}", p.state.OriginURL, "${EXTERNAL_HOST}", host, "${EXTERNAL_PORT}", port,
		"${MANAGED_PORT}", strconv.Itoa(managed)), nil
}

// gceEndpoint stands in a providers file for the Compute Engine emulator, which is started only then.
const gceEndpoint = "${GCE_ENDPOINT}"

func (p *plane) prepareProviders(ctx context.Context, replace *strings.Replacer) (string, error) {
	data, err := sampleFiles.ReadFile("samples/providers.yaml")
	source := "the sample providers"
	if p.opts.Providers != "" {
		source = p.opts.Providers
		data, err = os.ReadFile(p.opts.Providers)
	}
	if err != nil {
		return "", fmt.Errorf("--providers: %w", err)
	}
	text := replace.Replace(string(data))
	if strings.Contains(text, gceEndpoint) {
		url, err := p.startComputeEngine()
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(text, gceEndpoint, url)
	}
	path := filepath.Join(p.dir, "providers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	if err := reconcile.CheckProviders(ctx, path); err != nil {
		return "", fmt.Errorf("--providers: %s: %w", source, err)
	}
	return path, nil
}

func (p *plane) readSpecs(replace *strings.Replacer) ([]manifest.Item, error) {
	if p.opts.Specs != "" {
		items, err := manifest.ReadPaths([]string{p.opts.Specs}, os.Stdin, replace.Replace)
		if err != nil {
			return nil, fmt.Errorf("--specs: %w", err)
		}
		return items, nil
	}
	data, err := sampleFiles.ReadFile("samples/proxies.yaml")
	if err != nil {
		return nil, err
	}
	return manifest.Read("samples/proxies.yaml", []byte(replace.Replace(string(data))))
}

// seed writes the documents as an operator's apply would; documents that are there keep their status.
func (s samples) seed(ctx context.Context, o store.Operators) error {
	for _, item := range s.proxies {
		edit := store.Edit{Labels: item.Labels, Spec: item.Spec}
		_, err := o.CreateProxy(ctx, item.Name, edit)
		if errors.Is(err, store.ErrExists) {
			_, err = o.EditProxy(ctx, item.Name, edit, time.Time{})
		}
		if err != nil {
			return fmt.Errorf("write document %s: %w", item.Name, err)
		}
	}
	return nil
}

// openFirestore opens the store that the functions use.
func (p *plane) openFirestore(ctx context.Context) (*firestore.Store, error) {
	// The client knows emulators by this variable alone.
	if err := os.Setenv("FIRESTORE_EMULATOR_HOST", p.state.FirestoreHost); err != nil {
		return nil, err
	}
	return firestore.Open(ctx, p.state.ProjectID, "(default)")
}
