// Package proc runs child processes that end when we do.
package proc

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Process is one running child. Its children, if any, are of its process group and end with it.
type Process struct {
	Name string

	cmd      *exec.Cmd
	done     chan struct{}
	err      error
	stopOnce sync.Once
	stopping chan struct{}
	tail     *tail
}

// Command says what to run. Name is for messages; Out gets standard output and standard error.
type Command struct {
	Name string
	Path string
	Args []string
	Env  []string // added to our own environment
	Out  io.Writer
}

// Start starts a child and watches it.
func Start(c Command) (*Process, error) {
	p := &Process{Name: c.Name, done: make(chan struct{}), stopping: make(chan struct{}), tail: &tail{w: c.Out}}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.tail, p.tail
	p.cmd.SysProcAttr = attributes()
	p.cmd.WaitDelay = time.Second // a grandchild may hold the pipes open
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended, for whatever reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended and what it said last; nil while it runs and after Stop.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	select {
	case <-p.stopping:
		return nil
	default:
	}
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s: %s", p.Name, how, p.tail.String())
}

// Stop asks the child to end, kills its whole process group when it has not within grace, and
// returns when it is gone. It may be called more than once.
func (p *Process) Stop(grace time.Duration) {
	p.stopOnce.Do(func() { close(p.stopping) })
	_ = syscall.Kill(-p.Pid(), syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	// Whatever of the group is left has had its chance.
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	<-p.done
}

// WaitReady calls check every few milliseconds until it succeeds. It gives up when the child ends or
// ctx does.
func (p *Process) WaitReady(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.Err()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %s", p.Name, err, p.tail.String())
		case <-tick.C:
		}
	}
}

// FreePort returns a TCP port of 127.0.0.1 that was free a moment ago. For programs that cannot
// choose one by themselves; somebody else may take it first, so a failed start is worth another try.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail passes output on and remembers the end of it.
type tail struct {
	w io.Writer

	mu   sync.Mutex
	last []byte
}

const tailBytes = 600

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	if t.w != nil {
		_, _ = t.w.Write(b)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
