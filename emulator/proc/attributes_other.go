//go:build unix && !linux

package proc

import "syscall"

// attributes put the child into a group of its own, so that a Ctrl-C at the terminal reaches us alone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
