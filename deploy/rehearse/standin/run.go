package standin

import (
	"reflect"
	"strings"
)

func cloudRun() []route {
	const kind = `apis/serving\.knative\.dev/v1/namespaces/[^/]+/(services|revisions|configurations|routes)`
	return []route{
		{"GET", kind, func(s *Server, c *call) (any, error) {
			return Object{"apiVersion": "serving.knative.dev/v1", "kind": "List", "items": s.children("run", s.place(c), c.args[1]), "metadata": Object{}}, nil
		}},
		{"GET", kind + `/([^/]+)`, func(s *Server, c *call) (any, error) {
			if o := s.resources["run/"+s.place(c)+"/"+c.args[1]+"/"+c.args[2]]; o != nil {
				return o, nil
			}
			return nil, fail(404, "Resource '%s' of kind '%s' in region '%s' in project '%s' does not exist.", c.args[2], strings.ToUpper(strings.TrimSuffix(c.args[1], "s")), c.region, s.options.Project)
		}},
		{"POST", kind, (*Server).replaceService},
		{"PUT", kind + `/([^/]+)`, (*Server).replaceService},
		{"DELETE", kind + `/([^/]+)`, func(s *Server, c *call) (any, error) {
			c.name = s.place(c) + "/" + c.args[1] + "/" + c.args[2]
			if _, err := s.remove(c); err != nil {
				return nil, err
			}
			return Object{"kind": "Status", "apiVersion": "v1", "status": "Success"}, nil
		}},
		{"POST", `(projects/[^/]+/locations/[^/]+)/builds:submit`, (*Server).submitBuild},
	}
}

// place is where the services of the call's region are kept.
func (s *Server) place(c *call) string {
	region := c.region
	if region == "" {
		region = "-"
	}
	return "projects/" + s.options.Project + "/locations/" + region
}

// replaceService makes a service or puts another in its place.
func (s *Server) replaceService(c *call) (any, error) {
	o := clone(c.body)
	name := text(o, "metadata", "name")
	old := s.resources["run/"+s.place(c)+"/services/"+name]
	switch version := text(o, "metadata", "resourceVersion"); {
	case c.method == "POST" && old != nil:
		return nil, fail(409, "Resource '%s' already exists.", name)
	case c.method == "PUT" && old == nil:
		return nil, fail(404, "Resource '%s' of kind 'SERVICE' in region '%s' in project '%s' does not exist.", name, c.region, s.options.Project)
	case old != nil && version != "" && version != text(old, "metadata", "resourceVersion"):
		return nil, conflict("Conflict for resource '%s': version '%s' was specified.", name, version)
	}
	if err := s.checkService(o); err != nil {
		return nil, err
	}
	if c.query.Get("dryRun") == "all" {
		return o, nil
	}
	return s.ready(c.region, o, old)
}

// ready stores a service, with a new revision if its template is another, and the state that Cloud Run
// reaches after a while.
func (s *Server) ready(region string, o, old Object) (Object, error) {
	name := text(o, "metadata", "name")
	base := "projects/" + s.options.Project + "/locations/" + region
	url := "https://" + name + "-" + s.options.Number + "." + region + ".run.app"
	md := sub(o, "metadata")
	generation := 1.0
	if old != nil {
		previous, _ := dig(old, "metadata", "generation").(float64)
		generation = previous + 1
	}
	md["generation"], md["resourceVersion"], md["namespace"] = generation, s.etag(), s.options.Number
	md["creationTimestamp"], md["uid"] = now(), s.etag()
	sub(md, "labels")["cloud.googleapis.com/location"] = region
	sub(md, "annotations")["run.googleapis.com/urls"] = `["` + url + `"]`
	revision := text(o, "spec", "template", "metadata", "name")
	if revision == "" && old != nil && reflect.DeepEqual(dig(old, "spec", "template"), dig(o, "spec", "template")) {
		revision = text(old, "status", "latestReadyRevisionName")
	}
	if revision == "" {
		s.seq++
		revision = name + "-" + strings.ToLower(strings.Trim(s.etag(), "=")[:8])
	}
	traffic, err := s.traffic(base, url, revision, o)
	if err != nil {
		return nil, err
	}
	ready := Object{"type": "Ready", "status": "True", "lastTransitionTime": now()}
	o["apiVersion"], o["kind"] = "serving.knative.dev/v1", "Service"
	o["status"] = Object{"observedGeneration": generation, "conditions": []any{ready, condition("ConfigurationsReady"), condition("RoutesReady")},
		"url": url, "address": Object{"url": url}, "latestReadyRevisionName": revision, "latestCreatedRevisionName": revision, "traffic": traffic}
	s.resources["run/"+base+"/services/"+name] = o
	r := clone(sub(sub(o, "spec"), "template"))
	rm := sub(r, "metadata")
	rm["name"], rm["namespace"] = revision, s.options.Number
	sub(rm, "labels")["serving.knative.dev/service"] = name
	r["apiVersion"], r["kind"], r["status"] = "serving.knative.dev/v1", "Revision", Object{"conditions": []any{ready}}
	s.resources["run/"+base+"/revisions/"+revision] = r
	return o, nil
}

func condition(kind string) Object {
	return Object{"type": kind, "status": "True", "lastTransitionTime": now()}
}

// traffic resolves the service's wish: who gets how much, under which further addresses.
func (s *Server) traffic(base, url, latest string, o Object) ([]any, error) {
	wanted := list(o, "spec", "traffic")
	if len(wanted) == 0 {
		wanted = []any{Object{"percent": 100.0, "latestRevision": true}}
		sub(o, "spec")["traffic"] = wanted
	}
	sum, out := 0.0, []any{}
	for _, t := range wanted {
		target := clone(t.(Object))
		percent, _ := target["percent"].(float64)
		sum += percent
		revision := text(target, "revisionName")
		if target["latestRevision"] == true {
			target["revisionName"] = latest
		} else if revision != latest && !s.has("run", base+"/revisions/"+revision) {
			return nil, fail(400, "Revision named '%s' does not exist.", revision)
		}
		if tag := text(target, "tag"); tag != "" {
			target["url"] = strings.Replace(url, "https://", "https://"+tag+"---", 1)
		}
		out = append(out, target)
	}
	if sum != 100 {
		return nil, fail(400, "spec.traffic: percentages must add up to 100, not %v", sum)
	}
	return out, nil
}

// submitBuild is the build of `gcloud run deploy --source`.
func (s *Server) submitBuild(c *call) (any, error) {
	source := "b/" + text(c.body, "storageSource", "bucket") + "/o/" + text(c.body, "storageSource", "object")
	if !s.has("storage", source) {
		return nil, fail(404, "storage source %s was not found", source)
	}
	if account := text(c.body, "serviceAccount"); account != "" {
		if err := s.checkAccount(lastPart(account)); err != nil {
			return nil, err
		}
	}
	build, err := s.build(c.args[1], Object{"images": []any{text(c.body, "imageUri")}})
	if err != nil {
		return nil, err
	}
	op := s.done("cloudbuild", c.args[1], "google.devtools.cloudbuild.v1.Build",
		Object{"@type": "type.googleapis.com/google.devtools.cloudbuild.v1.BuildOperationMetadata", "build": build}, build)
	return Object{"buildOperation": op, "baseImageUri": text(c.body, "buildpackBuild", "baseImage")}, nil
}
