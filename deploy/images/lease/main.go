// Command lease is the image of the lease function.
package main

import (
	"crawl.example.com/proxyfleet/deploy/images/serve"
	"crawl.example.com/proxyfleet/functions/lease"
	"crawl.example.com/proxyfleet/pkg/app"
)

func main() { serve.Main(app.Handler(lease.Open)) }
