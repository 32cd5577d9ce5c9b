package standin

import (
	"fmt"
	"net"
	"strings"
)

func computeEngine() []route {
	const place = `(projects/[^/]+/(?:global|zones/[^/]+))`
	return []route{
		{"GET|POST", place + `/operations/([^/]+)(?:/wait)?`, func(s *Server, c *call) (any, error) {
			return s.get("compute", c.args[1]+"/operations/"+c.args[2])
		}},
		{"GET", `projects/[^/]+`, func(s *Server, _ *call) (any, error) {
			return Object{"kind": "compute#project", "name": s.options.Project}, nil
		}},
		{"GET", `(projects/[^/]+)/aggregated/instances`, (*Server).listInstances},
		{"GET", `(projects/[^/]+)/zones`, func(s *Server, c *call) (any, error) {
			return Object{"kind": "compute#zoneList", "items": []any{}}, nil
		}},
		{"DELETE", place + `/instances/[^/]+`, (*Server).deleteCompute},
		{"GET", place + `/firewalls`, func(s *Server, c *call) (any, error) {
			return Object{"items": s.children("compute", c.args[1], "firewalls")}, nil
		}},
		{"POST", place + `/firewalls`, (*Server).createFirewall},
		{"PATCH|PUT", place + `/firewalls/[^/]+`, (*Server).patchFirewall},
		{"DELETE", place + `/firewalls/[^/]+`, (*Server).deleteCompute},
	}
}

func computeLink(name string) string { return "https://www.googleapis.com/compute/v1/" + name }

// computed makes an operation that is done; Compute's are not like those of the other APIs.
func (s *Server) computed(parent, kind, target string) Object {
	s.seq++
	name := fmt.Sprintf("operation-%d", s.seq)
	o := Object{"kind": "compute#operation", "id": fmt.Sprint(s.seq), "name": name, "operationType": kind, "status": "DONE", "progress": 100.0,
		"targetLink": computeLink(target), "selfLink": computeLink(parent + "/operations/" + name), "insertTime": now(), "endTime": now()}
	if strings.Contains(parent, "/zones/") {
		o["zone"] = computeLink(parent)
	}
	s.resources["compute/"+parent+"/operations/"+name] = o
	return o
}

func (s *Server) createFirewall(c *call) (any, error) {
	o := clone(c.body)
	id := text(o, "name")
	if match(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`, id) == nil {
		return nil, fail(400, "Invalid value for field 'resource.name': '%s'.", id)
	}
	if err := s.checkFirewall(o); err != nil {
		return nil, err
	}
	full := c.name + "/" + id
	s.seq++
	o["kind"], o["id"], o["selfLink"], o["creationTimestamp"] = "compute#firewall", fmt.Sprint(s.seq), computeLink(full), now()
	if err := s.create("compute", full, o); err != nil {
		return nil, fail(409, "The resource '%s' already exists", full)
	}
	return s.computed(c.args[1], "insert", full), nil
}

func (s *Server) patchFirewall(c *call) (any, error) {
	old, err := s.get("compute", c.name)
	if err != nil {
		return nil, err
	}
	o := patch(old, c.body, "")
	if err := s.checkFirewall(o); err != nil {
		return nil, err
	}
	s.resources["compute/"+c.name] = o
	return s.computed(c.args[1], "patch", c.name), nil
}

func (s *Server) checkFirewall(o Object) error {
	network := text(o, "network")
	if i := strings.Index(network, "projects/"); i >= 0 {
		network = network[i:]
	}
	if !s.has("compute", network) {
		return fail(404, "The resource '%s' was not found", network)
	}
	for _, r := range list(o, "sourceRanges") {
		if _, _, err := net.ParseCIDR(fmt.Sprint(r)); err != nil {
			return fail(400, "Invalid value for field 'resource.sourceRanges': '%v'. Must be a valid CIDR address range.", r)
		}
	}
	for _, a := range list(o, "allowed") {
		if match(`tcp|udp|icmp|esp|ah|sctp|ipip|all`, text(a, "IPProtocol")) == nil {
			return fail(400, "Invalid value for field 'resource.allowed[0].IPProtocol': '%s'.", text(a, "IPProtocol"))
		}
	}
	return nil
}

func (s *Server) deleteCompute(c *call) (any, error) {
	if _, err := s.get("compute", c.name); err != nil {
		return nil, err
	}
	delete(s.resources, "compute/"+c.name)
	return s.computed(c.args[1], "delete", c.name), nil
}

// listInstances lists all instances by zone. Of filters it takes one label, as gcloud sends it.
func (s *Server) listInstances(c *call) (any, error) {
	filter := match(`\(?labels\.([\w-]+) ?(?:eq|=) ?"?\\?b?([^"\\ )]+?)\\?b?"?\)?`, c.query.Get("filter"))
	items := Object{}
	for _, k := range sortedKeys(s.resources) {
		m := match(`compute/`+c.args[1]+`/(zones/[^/]+)/instances/[^/]+`, k)
		if m == nil || filter != nil && text(s.resources[k], "labels", filter[1]) != filter[2] {
			continue
		}
		scope := sub(items, m[1])
		scope["instances"] = append(list(scope, "instances"), s.resources[k])
	}
	return Object{"kind": "compute#instanceAggregatedList", "items": items}, nil
}
