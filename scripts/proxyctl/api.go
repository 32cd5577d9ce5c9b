package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/client"
)

// leaseFlags say which lease function, and which leases.
type leaseFlags struct {
	url      string
	labels   []string
	provider string
	region   string
	holder   string
	ttl      time.Duration
	wait     time.Duration
}

// envLeaseURL says where the lease function is.
const envLeaseURL = "LEASE_URL"

const authHelp = `
The lease function is at --url (LEASE_URL). PROXYFLEET_API_KEY holds an API key, or an ID token that you fetched:
export PROXYFLEET_API_KEY=$(gcloud auth print-identity-token). Without it, on https, the service account of this machine is used.`

// add adds the flags; wait is how long is waited for a slot unless somebody says otherwise.
func (f *leaseFlags) add(cmd *cobra.Command, wait time.Duration) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", envOr(envLeaseURL, "http://127.0.0.1:8080"), "the lease function (LEASE_URL)")
	flags.StringArrayVarP(&f.labels, "label", "l", nil, "only proxies with label k=v; may be repeated")
	flags.StringVar(&f.provider, "provider", "", "only proxies of this provider")
	flags.StringVar(&f.region, "region", "", "only proxies in this region")
	flags.StringVar(&f.holder, "holder", "", "who asks, for people who look at leases")
	flags.DurationVar(&f.ttl, "ttl", 2*time.Minute, "how long a lease outlives this program when it dies, 10s to 1h")
	flags.DurationVar(&f.wait, "wait", wait, "how long to wait for a free slot, 0s to 30s")
}

// request returns what every lease is asked with.
func (f *leaseFlags) request() (client.Request, error) {
	labels, err := parseLabels(f.labels)
	switch {
	case err != nil:
		return client.Request{}, usageError{err}
	case f.ttl < 10*time.Second || f.ttl > time.Hour:
		return client.Request{}, usageError{errors.New("--ttl must be between 10s and 1h")}
	case f.wait < 0 || f.wait > 30*time.Second:
		return client.Request{}, usageError{errors.New("--wait must be between 0s and 30s")}
	}
	return client.Request{
		Holder: f.holder, TTLSeconds: int(f.ttl / time.Second), Labels: labels, Provider: f.provider, Region: f.region, WaitSeconds: int(f.wait / time.Second),
	}, nil
}

func (f *leaseFlags) client() (*client.Client, error) {
	leases, err := client.New(client.Config{URL: f.url, Token: tokenFor(f.url)})
	if err != nil {
		return nil, usageError{err}
	}
	return leases, nil
}

// why writes a refusal with its counts, or another error, for one line.
func why(err error) string {
	var r *client.Refusal
	if !errors.As(err, &r) {
		return printable(err.Error())
	}
	parts := []string{}
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	parts = append(parts, r.Message)
	if r.Reason == "" && (r.Code == http.StatusUnauthorized || r.Code == http.StatusForbidden) {
		parts = append(parts, "you may not call it; see proxyctl lease --help")
	}
	var counts []string
	for k, v := range r.Metadata {
		if k != "field" {
			counts = append(counts, v+" "+k)
		}
	}
	if slices.Sort(counts); len(counts) > 0 {
		parts = append(parts, strings.Join(counts, ", "))
	}
	return printable(strings.Join(parts, ": "))
}
