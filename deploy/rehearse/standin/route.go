package standin

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// route answers the requests of one method of one API.
type route struct {
	method string // or several, as in "PATCH|PUT"
	path   string // expression for the whole path behind the version, custom verb included
	serve  func(*Server, *call) (any, error)
}

var (
	compiled  sync.Map // expression -> *regexp.Regexp
	locations = regexp.MustCompile(`^projects/[^/]+/locations(?:/([^/:]+))?$`)
)

// match returns the groups of an expression that fits all of text, nil if it does not.
func match(expression, text string) []string {
	re, ok := compiled.Load(expression)
	if !ok {
		re, _ = compiled.LoadOrStore(expression, regexp.MustCompile("^(?:"+expression+")$"))
	}
	return re.(*regexp.Regexp).FindStringSubmatch(text)
}

// route finds what answers c: first the API's own routes, then what all APIs share.
func (s *Server) route(routes []route, c *call) (any, error) {
	name := s.canonical(c.name)
	for _, r := range routes {
		if !slices.Contains(strings.Split(r.method, "|"), c.method) {
			continue
		}
		if m := match(r.path, name); m != nil {
			c.name, c.args = name, m
			return r.serve(s, c)
		}
	}
	c.name = name
	return s.shared(c)
}

// shared answers what is the same everywhere: operations, policies, places, and GET and DELETE by name.
func (s *Server) shared(c *call) (any, error) {
	key := c.api + "/" + c.name
	switch {
	case match(`(?:.*/)?operations/[^/]+`, c.name) != nil:
		return s.poll(key)
	case match(`.*:(getIamPolicy|setIamPolicy|testIamPermissions)`, c.name) != nil:
		resource, verb, _ := cutLast(c.name, ":")
		return s.policy(c, resource, verb)
	case c.method == "GET" && locations.MatchString(c.name):
		return s.places(c), nil
	case c.method == "GET" && s.resources[key] != nil:
		return s.resources[key], nil
	case c.method == "GET":
		return nil, fail(404, "Resource '%s' was not found", c.name)
	case c.method == "DELETE":
		return s.remove(c)
	}
	return nil, nil
}

func (s *Server) places(c *call) Object {
	if m := locations.FindStringSubmatch(c.name); m[1] != "" {
		return Object{"name": c.name, "locationId": m[1]}
	}
	list := []any{}
	for _, r := range sortedKeys(regions) {
		list = append(list, Object{"name": c.name + "/" + r, "locationId": r})
	}
	return Object{"locations": list}
}

// remove deletes the resource and its policy. APIs whose DELETE is an operation get one.
func (s *Server) remove(c *call) (any, error) {
	key := c.api + "/" + c.name
	if s.resources[key] == nil {
		return nil, fail(404, "Resource '%s' was not found", c.name)
	}
	delete(s.resources, key)
	delete(s.policies, key)
	for k := range s.resources { // what was inside goes with it
		if strings.HasPrefix(k, key+"/") {
			delete(s.resources, k)
		}
	}
	parent := match(`(projects/[^/]+/locations/[^/]+)/repositories/.*|(projects/[^/]+/databases/[^/]+).*`, c.name)
	if parent == nil {
		return Object{}, nil
	}
	return s.done(c.api, parent[1]+parent[2], "google.protobuf.Empty", Object{}, Object{}), nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
