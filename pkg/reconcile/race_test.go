//go:build race

package reconcile

// slower is by how much the race detector slows the long tests down, so that they try fewer seeds.
const slower = 10
