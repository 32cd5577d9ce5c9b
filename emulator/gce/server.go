// Package gce plays as much of the Compute Engine API (compute/v1) as the control plane calls, for tests and for a plane on one machine.
//
// Instances and operations are functions of a clock: a request sees what the time makes of what was
// asked before, and nothing runs between requests. It is strict where the API is: a field that it does
// not know, a missing disk, a bad name or an unknown zone is 400. It imports nothing of the plane, so
// what it accepts is a second opinion about the requests.
package gce

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options are the parts of a Server that can be chosen. The zero value is a server on the real clock
// whose instances boot within three seconds.
type Options struct {
	Now       func() time.Time // default time.Now
	Zones     []string         // default: some real ones
	Provision time.Duration    // from insert to STAGING; default 1 s
	Boot      time.Duration    // from STAGING to RUNNING; default 2 s
	Stop      time.Duration    // from delete or stop to its end; default 1 s
	PageSize  int              // instances on a page at most, 1..500; default 500
	Quota     int              // instances of all zones together, past which inserts fail; 0 means none
	PerMinute int              // requests per minute, past which they are refused; 0 means any number

	// OnRunning is called once for each instance when it is first seen running, and returns the
	// address that it then has. Default: addresses of a documentation range, which lead nowhere.
	OnRunning func(Booted) (address string)
	// OnGone is called once for each such instance when it runs no more.
	OnGone func(Booted)
}

// Booted is an instance as the callbacks of Options see it. They are called while the server is locked
// and must not call it.
type Booted struct {
	Project, Zone, Name string
	Labels              map[string]string
	Metadata            map[string]string // user data is in here
}

// Server is the API. It is an http.Handler and safe for concurrent use.
type Server struct {
	opts Options
	mux  *http.ServeMux

	mu          sync.Mutex
	instances   map[key]*instance
	operations  map[key]*operation
	requests    map[string]*operation // by requestId
	unreachable map[string]bool       // zones
	faults      []*Fault
	calls       []Call
	serial      int64
	minute      time.Time // of which spent requests are counted
	spent       int

	http *http.Server
	url  string
}

// key names a zonal resource.
type key struct{ project, zone, name string }

// Call is one request that the server was sent.
type Call struct {
	Method Method
	Zone   string // empty for aggregated lists
	Name   string // of instance or operation
}

// Method is what a request asked for.
type Method string

// The methods that the server knows.
const (
	Insert         Method = "instances.insert"
	Get            Method = "instances.get"
	Delete         Method = "instances.delete"
	AggregatedList Method = "instances.aggregatedList"
	GetOperation   Method = "zoneOperations.get"
	ListOperations Method = "zoneOperations.list"
)

// New returns a server without instances.
func New(opts Options) *Server {
	s := &Server{
		opts:        opts.withDefaults(),
		mux:         http.NewServeMux(),
		instances:   map[key]*instance{},
		operations:  map[key]*operation{},
		requests:    map[string]*operation{},
		unreachable: map[string]bool{},
	}
	const zonal = "/compute/v1/projects/{project}/zones/{zone}/"
	s.mux.HandleFunc("POST "+zonal+"instances", s.serve(Insert, s.insert))
	s.mux.HandleFunc("GET "+zonal+"instances/{name}", s.serve(Get, s.get))
	s.mux.HandleFunc("DELETE "+zonal+"instances/{name}", s.serve(Delete, s.delete))
	s.mux.HandleFunc("GET "+zonal+"operations/{name}", s.serve(GetOperation, s.getOperation))
	s.mux.HandleFunc("GET "+zonal+"operations", s.serve(ListOperations, s.listOperations))
	s.mux.HandleFunc("GET /compute/v1/projects/{project}/aggregated/instances", s.serve(AggregatedList, s.aggregatedList))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, refuse(http.StatusNotFound, "notFound", "the emulator does not play %s %s", r.Method, r.URL.Path))
	})
	return s
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zones == nil {
		o.Zones = []string{
			"us-east1-b", "us-east1-c", "us-east1-d", "us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f",
			"us-west1-a", "us-west1-b", "europe-west1-b", "europe-west1-c", "europe-west1-d", "asia-east1-a", "asia-east1-b",
		}
	}
	or := func(d *time.Duration, unset time.Duration) {
		if *d == 0 {
			*d = unset
		}
	}
	or(&o.Provision, time.Second)
	or(&o.Boot, 2*time.Second)
	or(&o.Stop, time.Second)
	if o.PageSize <= 0 || o.PageSize > 500 {
		o.PageSize = 500
	}
	return o
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Start serves on addr, such as 127.0.0.1:0, until Close.
func (s *Server) Start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("compute emulator: %w", err)
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.url = "http://" + l.Addr().String()
	go s.http.Serve(l)
	return nil
}

// URL returns the endpoint of a started server.
func (s *Server) URL() string { return s.url }

// Close ends a started server and all its instances.
func (s *Server) Close() error {
	s.mu.Lock()
	for _, vm := range s.instances {
		s.gone(vm)
	}
	s.instances = map[key]*instance{}
	s.mu.Unlock()
	if s.http == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		return s.http.Close() // a slow answer was under way
	}
	return nil
}

// Calls returns what was asked so far, in order: the last few thousand requests.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}
