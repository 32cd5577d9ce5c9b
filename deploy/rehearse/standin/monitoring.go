package standin

import (
	"fmt"
	"strings"
)

func monitoring() []route {
	const policies, dashboards, channels = `(projects/[^/]+)/alertPolicies`, `(projects/[^/]+)/dashboards`, `(projects/[^/]+)/notificationChannels`
	routes := []route{}
	for _, r := range []struct{ path, collection string }{{policies, "alertPolicies"}, {dashboards, "dashboards"}, {channels, "notificationChannels"}} {
		routes = append(routes,
			route{"GET", r.path, func(s *Server, c *call) (any, error) {
				return Object{r.collection: s.children("monitoring", c.args[1], r.collection)}, nil
			}},
			route{"POST", r.path, func(s *Server, c *call) (any, error) { return s.createMonitoring(c, r.collection) }},
			route{"PATCH", r.path + `/[^/]+`, (*Server).patchMonitoring},
		)
	}
	return routes
}

func (s *Server) createMonitoring(c *call, collection string) (any, error) {
	o := clone(c.body)
	if collection == "alertPolicies" {
		if err := s.checkAlert(o); err != nil {
			return nil, err
		}
	}
	name := text(o, "name")
	if name == "" {
		s.seq++
		name = c.args[1] + "/" + collection + "/" + fmt.Sprint(1000+s.seq)
	}
	o["name"] = name
	if collection == "dashboards" {
		o["etag"] = s.etag()
	}
	return o, s.create("monitoring", name, o)
}

func (s *Server) patchMonitoring(c *call) (any, error) {
	old, err := s.get("monitoring", c.name)
	if err != nil {
		return nil, err
	}
	if tag := text(c.body, "etag"); tag != "" && tag != text(old, "etag") {
		return nil, conflict("The dashboard has changed meanwhile.")
	}
	o := patch(old, c.body, c.query.Get("updateMask"))
	o["name"] = c.name
	if strings.Contains(c.name, "/alertPolicies/") {
		if err := s.checkAlert(o); err != nil {
			return nil, err
		}
	}
	s.resources["monitoring/"+c.name] = o
	return o, nil
}

// checkAlert refuses a policy without a condition, of whose PromQL ones there is one at most, and with
// a channel that is not there.
func (s *Server) checkAlert(o Object) error {
	conditions := list(o, "conditions")
	if text(o, "displayName") == "" || len(conditions) != 1 || text(o, "combiner") == "" {
		return fail(400, "Field alert_policy needs a display name, a combiner and one condition")
	}
	if text(conditions[0], "conditionPrometheusQueryLanguage", "query") == "" {
		return fail(400, "Field alert_policy.conditions[0] needs a query")
	}
	for _, channel := range list(o, "notificationChannels") {
		if !s.has("monitoring", fmt.Sprint(channel)) {
			return fail(404, "Could not find notification channel %v", channel)
		}
	}
	return nil
}
