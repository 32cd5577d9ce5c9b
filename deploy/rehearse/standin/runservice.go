package standin

import (
	"fmt"
	"strings"
)

// checkService refuses a service that would not start, or that Cloud Run would not take.
func (s *Server) checkService(o Object) error {
	if match(`[a-z]([-a-z0-9]{0,47}[a-z0-9])?`, text(o, "metadata", "name")) == nil {
		return fail(400, "metadata.name: %q must use only lowercase letters, digits and dashes and be shorter than 50", text(o, "metadata", "name"))
	}
	if namespace := text(o, "metadata", "namespace"); namespace != s.options.Project && namespace != s.options.Number {
		return fail(400, "metadata.namespace: %q is not this project", namespace)
	}
	spec, _ := dig(o, "spec", "template", "spec").(Object)
	if spec == nil {
		return fail(400, "spec.template.spec is required")
	}
	for _, holder := range []any{o, dig(o, "spec", "template")} {
		if err := checkAnnotations(dig(holder, "metadata", "annotations")); err != nil {
			return err
		}
	}
	account := text(spec, "serviceAccountName")
	if account == "" {
		account = s.options.Number + "-compute@developer.gserviceaccount.com"
	}
	if err := s.checkAccount(account); err != nil {
		return err
	}
	if len(list(spec, "containers")) == 0 {
		return fail(400, "spec.template.spec.containers: at least one container is required")
	}
	volumes, err := s.checkVolumes(spec, account)
	if err != nil {
		return err
	}
	ports := 0
	for _, container := range list(spec, "containers") {
		ports += len(list(container, "ports"))
		if err := s.checkContainer(container, account, volumes); err != nil {
			return err
		}
	}
	if len(list(spec, "containers")) > 1 && ports != 1 {
		return fail(400, "spec.template.spec.containers: exactly one container must have a port, not %d", ports)
	}
	return nil
}

// annotations are the values that Cloud Run takes.
var annotations = map[string]string{
	"autoscaling.knative.dev/minScale":                 `[0-9]+`,
	"autoscaling.knative.dev/maxScale":                 `[0-9]+`,
	"run.googleapis.com/minScale":                      `[0-9]+`,
	"run.googleapis.com/maxScale":                      `[0-9]+`,
	"run.googleapis.com/ingress":                       `all|internal|internal-and-cloud-load-balancing`,
	"run.googleapis.com/execution-environment":         `gen1|gen2`,
	"run.googleapis.com/cpu-throttling":                `(?i)true|false`,
	"run.googleapis.com/startup-cpu-boost":             `(?i)true|false`,
	"run.googleapis.com/invoker-iam-disabled":          `(?i)false`, // a plane that anybody may call is never meant
	"run.googleapis.com/launch-stage":                  `GA|BETA|ALPHA`,
	"run.googleapis.com/vpc-access-egress":             `private-ranges-only|all-traffic`,
	"run.googleapis.com/container-dependencies":        `\{.*\}`,
	"run.googleapis.com/network-interfaces":            `\[.*\]`,
	"run.googleapis.com/default-url-disabled":          `(?i)false`,
	"run.googleapis.com/health-check-disabled":         `(?i)true|false`,
	"run.googleapis.com/gpu-zonal-redundancy-disabled": `(?i)true|false`,
}

func checkAnnotations(values any) error {
	m, _ := values.(Object)
	for k, v := range m {
		if want, ok := annotations[k]; ok && match(want, fmt.Sprint(v)) == nil {
			return fail(400, "annotation %s: invalid value %v", k, v)
		}
	}
	return nil
}

// checkVolumes returns the names of the volumes.
func (s *Server) checkVolumes(spec Object, account string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, v := range list(spec, "volumes") {
		names[text(v, "name")] = true
		secret := text(v, "secret", "secretName")
		if secret == "" {
			continue
		}
		for _, item := range list(v, "secret", "items") {
			if err := s.checkSecret(secret, text(item, "key"), account); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}

func (s *Server) checkContainer(container any, account string, volumes map[string]bool) error {
	uri := text(container, "image")
	if uri == "" {
		return fail(400, "spec.template.spec.containers.image: required")
	}
	if err := s.checkImage(uri); err != nil {
		return err
	}
	for resource, want := range map[string]string{"cpu": `[0-9.]+m?`, "memory": `[0-9.]+(Ki|Mi|Gi|k|M|G)`} {
		if v := text(container, "resources", "limits", resource); v != "" && match(want, v) == nil {
			return fail(400, "spec.template.spec.containers.resources.limits: invalid %s %v", resource, v)
		}
	}
	for _, m := range list(container, "volumeMounts") {
		if !volumes[text(m, "name")] {
			return fail(400, "spec.template.spec.containers.volumeMounts: there is no volume %q", text(m, "name"))
		}
	}
	for _, e := range list(container, "env") {
		switch name := text(e, "name"); name {
		case "PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION":
			return fail(400, "spec.template.spec.containers.env: the following reserved env names were provided: %s.", name)
		}
		if ref := dig(e, "valueFrom", "secretKeyRef"); ref != nil {
			if err := s.checkSecret(text(ref, "name"), text(ref, "key"), account); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveFunction answers at the address of a service, or of a tag of it: as Cloud Run does to callers
// whom it does not know, else as the three functions do to a look that changes nothing.
func (s *Server) serveFunction(c *call) (any, error) {
	host := c.host
	tag, rest, tagged := strings.Cut(host, "---")
	if tagged {
		host = rest
	}
	m := match(`(.+)-`+s.options.Number+`\.([a-z0-9-]+)\.run\.app`, host)
	if m == nil {
		return nil, fail(404, "no such host: %s", host)
	}
	key := "run/projects/" + s.options.Project + "/locations/" + m[2] + "/services/" + m[1]
	service := s.resources[key]
	if service == nil || tagged && !hasTag(service, tag) {
		return rawResponse{status: 404, body: "<html>Page not found</html>"}, nil
	}
	if !strings.HasPrefix(c.header.Get("Authorization"), "Bearer ") && !s.holds(key, "roles/run.invoker", "allUsers") {
		return rawResponse{status: 403, body: "<html>Your client does not have permission to get URL from this server.</html>"}, nil
	}
	switch {
	case strings.HasSuffix(m[1], "lease") && c.method == "GET" && c.path == "healthz":
		return rawResponse{status: 200, body: "ok"}, nil
	case strings.HasSuffix(m[1], "lease") && c.method == "GET" && c.path == "v1/status":
		return Object{"version": "rehearsed"}, nil
	case c.method == "GET":
		return rawResponse{status: 405}, nil
	}
	return rawResponse{status: 204}, nil
}

func hasTag(service Object, tag string) bool {
	for _, t := range list(service, "status", "traffic") {
		if text(t, "tag") == tag {
			return true
		}
	}
	return false
}
