// Command reconcile is the image of the reconcile function.
package main

import (
	"crawl.example.com/proxyfleet/deploy/images/serve"
	"crawl.example.com/proxyfleet/functions/reconcile"
	"crawl.example.com/proxyfleet/pkg/app"
)

func main() { serve.Main(app.Handler(reconcile.Open)) }
