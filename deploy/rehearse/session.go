package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/deploy/rehearse/standin"
)

// The one project of a rehearsal.
const (
	project = "demo-project"
	number  = "123456789012"
	region  = "us-central1"
)

// session is a stand-in that listens, and the environment that turns gcloud to it.
type session struct {
	server *standin.Server
	listen *http.Server
	env    []string
}

// open starts a session; its files go into dir. Close it.
func open(ctx context.Context, dir string, o standin.Options) (*session, error) {
	o.Project, o.Number = project, number
	server, err := standin.New(o)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &session{server: server, listen: &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}}
	go func() { _ = s.listen.Serve(l) }()
	if s.env, err = environment(os.Environ(), dir, l.Addr().(*net.TCPAddr), server.CA()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *session) close() error { return s.listen.Close() }

// environment returns env with nothing of the caller's own gcloud or proxies in it, and all that makes
// gcloud, curl and Go programs talk to the stand-in only.
func environment(env []string, dir string, addr *net.TCPAddr, ca []byte) ([]string, error) {
	out := []string{}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		foreign := strings.HasSuffix(strings.ToLower(name), "_proxy")
		for _, prefix := range []string{"CLOUDSDK_", "GOOGLE_", "GCLOUD_"} {
			foreign = foreign || strings.HasPrefix(name, prefix)
		}
		if !foreign {
			out = append(out, kv)
		}
	}
	files := map[string][]byte{"ca.pem": ca, "token": []byte("made-up-for-the-rehearsal\n")}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	proxy := "http://" + addr.String()
	pem := filepath.Join(dir, "ca.pem")
	return append(out,
		"CLOUDSDK_CONFIG="+filepath.Join(dir, "gcloud"),
		"CLOUDSDK_AUTH_ACCESS_TOKEN_FILE="+filepath.Join(dir, "token"),
		"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE="+pem,
		"CLOUDSDK_PROXY_TYPE=http", "CLOUDSDK_PROXY_ADDRESS=127.0.0.1", fmt.Sprintf("CLOUDSDK_PROXY_PORT=%d", addr.Port),
		"CLOUDSDK_CORE_PROJECT="+project,
		"CLOUDSDK_CORE_DISABLE_PROMPTS=1",
		"CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=1",
		"CLOUDSDK_CORE_DISABLE_FILE_LOGGING=1",
		"CLOUDSDK_CORE_CHECK_GCE_METADATA=0", "NO_GCE_CHECK=true",
		"CLOUDSDK_CORE_SHOULD_PROMPT_TO_ENABLE_API=0",
		"CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=1",
		"CLOUDSDK_SURVEY_DISABLE_PROMPTS=1",
		"HTTPS_PROXY="+proxy, "https_proxy="+proxy, "SSL_CERT_FILE="+pem, "CURL_CA_BUNDLE="+pem,
		"TRIES=2", "PAUSE=0.1", "IDENTITY_TOKEN=made-up-for-the-rehearsal",
	), nil
}

// descriptions returns the folder of the module that carries Google's own descriptions of its APIs.
func descriptions(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		return "", fmt.Errorf("find google.golang.org/api: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
