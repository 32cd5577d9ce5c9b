// Package proxyfleet is a serverless control plane for a fleet of crawl proxies: it makes the VMs
// that documents ask for, proves that traffic passes through them, and leases them to crawlers.
//
// # Goals
//
// It is right under crashes first: every step can be cut off or repeated, names are derived and not
// drawn, and the documents in the store are the only memory. It is cheap second: nothing runs while
// nobody crawls, a steady fleet costs one read a minute per proxy and no write. It is quick third: a
// lease costs one call to the store.
//
// # The packages, bottom-up
//
//   - pkg/fleet: the Proxy document, its rules and conditions, and its entry in the catalog.
//     pkg/manifest reads what operators write.
//   - pkg/provider: what a cloud must do for us and how its errors are classed; pkg/provider/mock
//     and pkg/provider/gce do it, pkg/provider/providertest holds both to it,
//     pkg/provider/registry builds what a providers file lists.
//   - pkg/store: where documents, slots, the catalog and the run lock live; in memory and on
//     Firestore, held to one suite.
//   - pkg/secret: turns references into secrets.
//   - pkg/reconcile, pkg/health, pkg/lease: the three loops. They never import each other: they meet
//     in the documents.
//   - pkg/app: what every function shares.
//   - functions: the three edges, each naming its concrete parts.
//
// Four pure functions carry the product, and a reader who knows them knows it: fleet.Validate,
// reconcile.Plan, health.Judge and lease.Pick.
//
// # One proxy, followed through
//
// An operator applies a manifest; proxyctl validates it and writes proxies/us-east1-a. Within a
// minute the scheduler calls Reconcile. It takes the run lock, reads all documents and lists all
// instances. Plan sees a document without an instance: the run writes the intended name into the
// status, then asks the provider for a VM of that name. Should the run die in between, the next one
// finds the intent and asks for the same name again.
//
// A later run sees the instance Running, records its address and puts the proxy into the catalog.
// It also publishes a message that names the proxies which are due for a probe. Pub/Sub pushes it to
// Health, which fetches the spec's URL through each of them; Judge turns outcomes into a verdict, and
// a verdict that flips is written to the document and into the catalog at once.
//
// A crawler posts to /v1/leases. The lease function knows the catalog, so Pick chooses a proxy and a
// slot without asking anyone, and creating the slot's document takes the lease: if two crawlers
// chose the same slot, the store lets one of them win and the other tries its next candidate. The
// crawler gets an address with credentials, an expiry and a fencing token. It renews, it releases;
// or it dies, and the slot is free again when the lease has expired.
//
// The operator deletes the proxy. The next run closes its entry in the catalog, so that no new lease
// is granted, waits until the live ones have ended or drainTimeout is over, deletes the VM and, when
// it is gone, the document.
package proxyfleet

import (
	// The buildpack generates its main for functions that are registered like this.
	_ "github.com/GoogleCloudPlatform/functions-framework-go/functions"

	// The three functions. FUNCTION_TARGET says which of them a process serves.
	_ "crawl.example.com/proxyfleet/functions/health"
	_ "crawl.example.com/proxyfleet/functions/lease"
	_ "crawl.example.com/proxyfleet/functions/reconcile"
)
