// Package standin plays the Google Cloud APIs that a deploy of proxyfleet calls, for the real gcloud on
// this machine: it keeps resources in memory, refuses what the services would refuse where deploy
// scripts go wrong, and records every request.
//
// It is a control plane only: nothing is built, no message is delivered, no function runs. It knows no
// quotas, no organisation policies, no permissions of the caller and no propagation delays.
package standin

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"regexp"
	"sync"
)

// Object is one JSON object.
type Object = map[string]any

// Options describe the one project that exists.
type Options struct {
	Project   string // its id
	Number    string // its number, 12 digits
	Discovery string // folder of the module google.golang.org/api, whose JSON files describe each API
	AllAPIs   bool   // every API is enabled from the start
	LROPolls  int    // how often an operation is polled before it is done; 0: done at once
}

// Server is the stand-in. Make one with New. It is an http.Handler, both for plain requests and as a
// proxy for CONNECT.
type Server struct {
	options   Options
	discovery *discovery

	mu        sync.Mutex
	seq       int
	requests  []Request
	resources map[string]Object // "api/relative name"
	policies  map[string]Object // the same keys
	ops       map[string]*operation
	uploads   map[string]upload
	deleted   map[string]bool // custom roles, which stay around for a week after their deletion
	faults    []*fault
	routes    map[string][]route

	authority    *x509.Certificate
	authorityKey *ecdsa.PrivateKey
	leafKey      *ecdsa.PrivateKey
	leaves       map[string]*tls.Certificate
}

type fault struct {
	match  *regexp.Regexp
	status int
	left   int // how many more times
}

// New returns a stand-in for a new project. Its error is about keys and the folder of descriptions.
func New(o Options) (*Server, error) {
	s := &Server{options: o, resources: map[string]Object{}, policies: map[string]Object{}, ops: map[string]*operation{},
		uploads: map[string]upload{}, deleted: map[string]bool{}, leaves: map[string]*tls.Certificate{}}
	s.routes = s.apis()
	var err error
	if s.discovery, err = openDiscovery(o.Discovery); err != nil {
		return nil, err
	}
	if err := s.makeAuthority(); err != nil {
		return nil, err
	}
	s.seed()
	return s, nil
}

// apis lists what is answered, by API.
func (s *Server) apis() map[string][]route {
	return map[string][]route{
		"artifactregistry": artifactRegistry(), "cloudbuild": cloudBuild(), "cloudresourcemanager": resourceManager(),
		"cloudscheduler": scheduler(), "compute": computeEngine(), "firestore": firestore(), "iam": identities(),
		"monitoring": monitoring(), "pubsub": pubSub(), "run": cloudRun(), "secretmanager": secretManager(),
		"serviceusage": serviceUsage(), "storage": storage(),
		// Scheduler's commands ask whether there is an App Engine application, whose region they would take.
		"appengine": {{"GET", `.*`, func(*Server, *call) (any, error) { return nil, fail(404, "There is no App Engine application.") }}},
		// A build's output is looked for in the log.
		"logging": {{"POST", `entries:(list|tail)`, func(*Server, *call) (any, error) { return Object{}, nil }}},
	}
}

// seed makes what every new project has.
func (s *Server) seed() {
	p := s.options.Project
	for _, name := range []string{"bigquery", "logging", "monitoring", "servicemanagement", "serviceusage", "storage"} {
		s.enable(name + ".googleapis.com")
	}
	robot := s.options.Number + "-compute@developer.gserviceaccount.com"
	s.resources["iam/projects/"+p+"/serviceAccounts/"+robot] = Object{"name": "projects/" + p + "/serviceAccounts/" + robot, "email": robot, "projectId": p}
	s.resources["compute/projects/"+p+"/global/networks/default"] = Object{"kind": "compute#network", "name": "default",
		"selfLink": computeLink("projects/" + p + "/global/networks/default")}
	s.policies["cloudresourcemanager/projects/"+p] = Object{"version": 1.0, "etag": s.etag(),
		"bindings": []any{Object{"role": "roles/owner", "members": []any{"user:owner@example.com"}}}}
}

// Put adds a resource under its key, "api/relative name", as if somebody else had made it.
func (s *Server) Put(key string, resource Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources[key] = resource
}

// Load adds the resources and policies of a state, such as another stand-in's.
func (s *Server) Load(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, o := range state.Resources {
		s.resources[key] = clone(o)
	}
	for key, o := range state.Policies {
		s.policies[key] = clone(o)
	}
}

// Fail answers the next times requests whose "METHOD host/path" matches the expression with status.
func (s *Server) Fail(expression string, status, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{regexp.MustCompile(expression), status, times})
}

// State is all that is there at one moment.
type State struct {
	Resources map[string]Object // by "api/relative name"
	Policies  map[string]Object // IAM policies, by the same keys
}

// State returns a copy of all resources and policies.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := State{Resources: maps.Clone(s.resources), Policies: maps.Clone(s.policies)}
	for k, o := range out.Resources {
		out.Resources[k] = clone(o)
	}
	for k, o := range out.Policies {
		out.Policies[k] = clone(o)
	}
	return out
}
