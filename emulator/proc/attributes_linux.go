package proc

import "syscall"

// attributes put the child into a group of its own, so that a Ctrl-C at the terminal reaches us
// alone, and have the kernel end it should we be killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
