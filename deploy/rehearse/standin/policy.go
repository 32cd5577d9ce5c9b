package standin

import (
	"fmt"
	"slices"
	"strings"
)

// policy reads and writes the IAM policy of one resource, with etags.
func (s *Server) policy(c *call, resource, verb string) (any, error) {
	key := c.api + "/" + resource
	if verb == "testIamPermissions" { // the owner may do everything, also to what is not there yet
		return Object{"permissions": c.body["permissions"]}, nil
	}
	if c.api != "cloudresourcemanager" && s.resources[key] == nil {
		return nil, fail(404, "Resource '%s' was not found", resource)
	}
	current := s.policies[key]
	if current == nil {
		current = Object{"version": 1.0, "etag": "ACAB"}
	}
	if verb == "getIamPolicy" {
		return current, nil
	}
	wanted, _ := c.body["policy"].(Object)
	if wanted == nil {
		return nil, fail(400, "Invalid value at 'policy': required")
	}
	if tag := text(wanted, "etag"); tag != "" && tag != text(current, "etag") {
		return nil, conflict("There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff.")
	}
	for _, b := range list(wanted, "bindings") {
		if err := s.checkBinding(b, wanted["version"]); err != nil {
			return nil, err
		}
	}
	wanted = clone(wanted)
	wanted["etag"] = s.etag()
	if wanted["version"] == nil {
		wanted["version"] = 1.0
	}
	s.policies[key] = wanted
	return wanted, nil
}

func (s *Server) checkBinding(binding, version any) error {
	if err := s.checkRole(text(binding, "role")); err != nil {
		return err
	}
	if dig(binding, "condition") != nil && version != 3.0 {
		return fail(400, "Policies with conditions need version 3")
	}
	if dig(binding, "condition") != nil && text(binding, "condition", "title") == "" {
		return fail(400, "A condition needs a title")
	}
	for _, m := range list(binding, "members") {
		if err := s.checkMember(fmt.Sprint(m)); err != nil {
			return err
		}
	}
	return nil
}

// predefined are the usual roles near our purpose: a role that is not here is taken for a misspelling.
var predefined = set(`roles/owner roles/editor roles/viewer roles/artifactregistry.admin roles/artifactregistry.reader roles/artifactregistry.writer
roles/cloudbuild.builds.builder roles/cloudbuild.builds.editor roles/cloudscheduler.admin roles/cloudscheduler.jobRunner
roles/compute.admin roles/compute.instanceAdmin roles/compute.instanceAdmin.v1 roles/compute.networkUser roles/compute.viewer
roles/datastore.owner roles/datastore.user roles/datastore.viewer roles/datastore.indexAdmin roles/datastore.importExportAdmin
roles/iam.serviceAccountAdmin roles/iam.serviceAccountUser roles/iam.serviceAccountTokenCreator roles/iam.serviceAccountOpenIdTokenCreator
roles/logging.admin roles/logging.logWriter roles/logging.viewer roles/monitoring.admin roles/monitoring.editor roles/monitoring.metricWriter
roles/monitoring.viewer roles/pubsub.admin roles/pubsub.editor roles/pubsub.publisher roles/pubsub.subscriber roles/pubsub.viewer
roles/run.admin roles/run.builder roles/run.developer roles/run.invoker roles/run.sourceDeveloper roles/run.viewer
roles/secretmanager.admin roles/secretmanager.secretAccessor roles/secretmanager.secretVersionAdder roles/secretmanager.viewer
roles/serviceusage.serviceUsageConsumer roles/storage.admin roles/storage.objectAdmin roles/storage.objectCreator roles/storage.objectUser
roles/storage.objectViewer`)

func (s *Server) checkRole(role string) error {
	if match(`projects/[^/]+/roles/[\w.]+`, role) != nil {
		if !s.has("iam", role) || s.deleted[role] {
			return fail(400, "Role %s does not exist in the resource's hierarchy.", role)
		}
		return nil
	}
	if !predefined[role] {
		return fail(400, "Role %s is not supported for this resource.", role)
	}
	return nil
}

func (s *Server) checkMember(member string) error {
	if member == "allUsers" || member == "allAuthenticatedUsers" {
		return nil
	}
	kind, id, ok := strings.Cut(member, ":")
	if !ok {
		return fail(400, "Invalid member %q: it must be of the form {type}:{value}.", member)
	}
	switch kind {
	case "serviceAccount":
		return s.checkAccount(id)
	case "user", "group", "domain", "deleted", "principal", "principalSet":
		return nil
	}
	return fail(400, "The member %s is of an unknown type.", member)
}

// checkAccount refuses an account of this project that was not made. Google's own agents and other
// projects' accounts pass.
func (s *Server) checkAccount(email string) error {
	user, domain, _ := strings.Cut(email, "@")
	known := false
	switch {
	case domain == s.options.Project+".iam.gserviceaccount.com":
		known = s.has("iam", "projects/"+s.options.Project+"/serviceAccounts/"+email)
	case domain == "developer.gserviceaccount.com":
		known = user == s.options.Number+"-compute"
	case strings.HasPrefix(domain, "gcp-sa-"), domain == "serverless-robot-prod.iam.gserviceaccount.com":
		known = user == "service-"+s.options.Number
	default:
		known = user != "" && strings.HasSuffix(domain, ".gserviceaccount.com")
	}
	if !known {
		return fail(400, "Service account %s does not exist.", email)
	}
	return nil
}

// holds reports whether a member has a role on a resource, or on the project without a condition.
func (s *Server) holds(key, role, member string) bool {
	for _, k := range []string{key, "cloudresourcemanager/projects/" + s.options.Project} {
		for _, b := range list(s.policies[k], "bindings") {
			if text(b, "role") == role && dig(b, "condition") == nil && slices.Contains(list(b, "members"), any(member)) {
				return true
			}
		}
	}
	return false
}
