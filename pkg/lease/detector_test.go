//go:build race

package lease

// slower is by how much the race detector slows the long tests down, so that they do less.
const slower = 10
