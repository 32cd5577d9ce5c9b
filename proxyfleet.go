// Package proxyfleet is a serverless control plane for a fleet of crawl proxies.
package proxyfleet

import (
	// The buildpack generates its main for functions that are registered like this.
	_ "github.com/GoogleCloudPlatform/functions-framework-go/functions"

	// The three functions. FUNCTION_TARGET says which of them a process serves.
	_ "crawl.example.com/proxyfleet/functions/health"
	_ "crawl.example.com/proxyfleet/functions/lease"
	_ "crawl.example.com/proxyfleet/functions/reconcile"
)
