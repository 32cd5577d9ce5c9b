// Command health is the image of the health function.
package main

import (
	"crawl.example.com/proxyfleet/deploy/images/serve"
	"crawl.example.com/proxyfleet/functions/health"
	"crawl.example.com/proxyfleet/pkg/app"
)

func main() { serve.Main(app.Handler(health.Open)) }
