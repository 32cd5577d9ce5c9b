// Package health finds out whether traffic really passes through each proxy.
//
// Reconcile fans the due targets of its run out in messages (Due, Fanout). The health function hands
// each message to a Sweeper, which probes the targets at once (Prober), makes a verdict of what it
// saw (Judge) and records it if it says anything new. When a probe fails, its URL is fetched without
// a proxy: if that fails too, the judge is down and no proxy is blamed.
package health
