package mock

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// host is the address of all instances: the only one that every system lets a program listen on.
const host = "127.0.0.1"

// ports holds the listeners of this process. A port belongs to the process and not to one cloud, so
// this is the one value that all clouds share.
var ports = struct {
	sync.Mutex
	open map[int32]*listener
}{open: map[int32]*listener{}}

// listener serves one port for all instances that have it.
type listener struct {
	port   int32
	server *http.Server
	cancel context.CancelFunc // ends what its requests wait for
	ended  chan struct{}      // closed when the server accepts no more

	mu      sync.Mutex
	closed  bool
	holders map[string]int // instances by the credentials that they ask for; "" asks for none
	serving sync.WaitGroup // requests, tunnels included
}

// acquire puts one more instance on a port. Where instances with several credentials share a port, it
// takes the credentials of any of them.
func acquire(port int32, credentials string) (*listener, error) {
	ports.Lock()
	defer ports.Unlock()
	l := ports.open[port]
	if l == nil {
		socket, err := listen(port)
		if err != nil {
			return nil, err
		}
		l = serve(port, socket)
		ports.open[port] = l
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders[credentials]++
	return l, nil
}

// free reports why no instance can have the port, nil when one can.
func free(port int32) error {
	ports.Lock()
	defer ports.Unlock()
	if ports.open[port] != nil {
		return nil
	}
	socket, err := listen(port)
	if err != nil {
		return err
	}
	return socket.Close()
}

func listen(port int32) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
}

func serve(port int32, socket net.Listener) *listener {
	ctx, cancel := context.WithCancel(context.Background())
	l := &listener{port: port, cancel: cancel, ended: make(chan struct{}), holders: map[string]int{}}
	l.server = &http.Server{
		Handler:           &proxy{listener: l, forward: newForward()},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(l.ended)
		_ = l.server.Serve(socket)
	}()
	return l
}

// release takes one instance off the port. With the last one the port is free again, every connection
// closed and every request over when release returns.
func (l *listener) release(credentials string) {
	ports.Lock()
	defer ports.Unlock()
	if !l.drop(credentials) {
		return
	}
	delete(ports.open, l.port)
	_ = l.server.Close()
	l.cancel()
	<-l.ended
	l.serving.Wait()
}

// drop reports whether that was the last instance.
func (l *listener) drop(credentials string) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders[credentials]--; l.holders[credentials] == 0 {
		delete(l.holders, credentials)
	}
	l.closed = len(l.holders) == 0
	return l.closed
}

// enter counts a request in unless the port is being closed.
func (l *listener) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.serving.Add(1)
	return true
}

// allows reports whether credentials open any of the proxies on the port.
func (l *listener) allows(credentials string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holders[""] > 0 || l.holders[credentials] > 0
}
