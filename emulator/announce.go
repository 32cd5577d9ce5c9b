package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// announce prints what is there and how to use it, and at last that it is ready.
func (p *plane) announce() {
	s := p.state
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	row := func(what, where string) { fmt.Fprintf(w, "%s\t%s\n", what, where) }
	row("leases", s.LeaseURL+"/v1/leases")
	row("console", s.ConsoleURL)
	row("origin to crawl", s.OriginURL)
	row("its authority", s.OriginCAFile)
	row("store", strings.TrimSpace(s.Store+" "+s.FirestoreHost))
	row("fleet", fmt.Sprintf("%d proxies, reconciled every %s", len(p.fleet.proxies), p.opts.Tick))
	row("logs", s.LogDir)
	_ = w.Flush()
	fmt.Fprintf(p.out, `
In another terminal, say where it is, take a lease and crawl through it:

  export ORIGIN_URL=%[3]s ORIGIN_CA=%[2]s LEASE_URL=%[1]s
  curl -s -X POST %[1]s/v1/leases -d '{"labels":{"pool":"news"}}'
  curl --proxytunnel -x ENDPOINT_URL --cacert %[2]s %[3]s/

`, s.LeaseURL, s.OriginCAFile, s.OriginURL)
	if s.Store == storeMemory {
		fmt.Fprintf(p.out, "Of proxyctl validate, lease and gateway work here; the rest needs --store=firestore.\n\n")
	} else {
		fmt.Fprintf(p.out, "For proxyctl there, too:\n\n  export PROJECT_ID=%s FIRESTORE_EMULATOR_HOST=%s\n\n", s.ProjectID, s.FirestoreHost)
	}
	fmt.Fprintf(p.out, "Ctrl-C stops everything.\n\n")
	fmt.Fprintf(p.out, "proxyfleet ready %s\n", s.LeaseURL)
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
