//go:build !race

package lease

// slower is 1 where nothing slows the long tests down.
const slower = 1
