package standin

import (
	"fmt"
	"strings"
)

func serviceUsage() []route {
	const service = `projects/[^/]+/services`
	return []route{
		{"GET", service, (*Server).listServices},
		{"POST", service + `:batchEnable`, (*Server).enableServices},
		{"POST", service + `/([^/:]+):enable`, func(s *Server, c *call) (any, error) {
			c.body = Object{"serviceIds": []any{c.args[1]}}
			return s.enableServices(c)
		}},
		{"POST", service + `/([^/:]+):generateServiceIdentity`, func(s *Server, c *call) (any, error) {
			api := strings.TrimSuffix(c.args[1], ".googleapis.com")
			email := "service-" + s.options.Number + "@gcp-sa-" + api + ".iam.gserviceaccount.com"
			return s.done(c.api, "", "google.api.serviceusage.v1beta1.ServiceIdentity", Object{}, Object{"email": email, "uniqueId": "1"}), nil
		}},
	}
}

func (s *Server) enable(service string) {
	s.resources["serviceusage/projects/"+s.options.Project+"/services/"+service] = Object{
		"name": "projects/" + s.options.Number + "/services/" + service, "parent": "projects/" + s.options.Number,
		"state": "ENABLED", "config": Object{"name": service, "title": service}}
}

func (s *Server) enabled(service string) bool {
	return s.options.AllAPIs || s.has("serviceusage", "projects/"+s.options.Project+"/services/"+service)
}

func (s *Server) listServices(*call) (any, error) {
	return Object{"services": s.children("serviceusage", "projects/"+s.options.Project, "services")}, nil
}

func (s *Server) enableServices(c *call) (any, error) {
	names := list(c.body, "serviceIds")
	for _, id := range names {
		api, ok := strings.CutSuffix(fmt.Sprint(id), ".googleapis.com")
		if known := s.routes[api] != nil || api == "iamcredentials"; !ok || !known {
			return nil, fail(403, "Not found or permission denied for service(s): %v.", id)
		}
	}
	enabled := []any{}
	for _, id := range names {
		s.enable(fmt.Sprint(id))
		enabled = append(enabled, s.resources["serviceusage/projects/"+s.options.Project+"/services/"+fmt.Sprint(id)])
	}
	return s.done(c.api, "", "google.api.serviceusage.v1.BatchEnableServicesResponse", Object{}, Object{"services": enabled}), nil
}

func resourceManager() []route {
	return []route{{"GET", `projects/[^/:]+`, func(s *Server, c *call) (any, error) {
		if c.version == "v3" {
			return Object{"name": "projects/" + s.options.Number, "projectId": s.options.Project, "state": "ACTIVE"}, nil
		}
		return Object{"projectId": s.options.Project, "projectNumber": s.options.Number, "lifecycleState": "ACTIVE", "name": s.options.Project}, nil
	}}}
}
