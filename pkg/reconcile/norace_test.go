//go:build !race

package reconcile

const slower = 1
