package standin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

func cloudBuild() []route {
	const builds = `(projects/[^/]+(?:/locations/[^/]+)?)/builds`
	return []route{
		{"GET", `projects/[^/]+/locations/[^/]+/defaultServiceAccount`, func(s *Server, c *call) (any, error) {
			return Object{"name": c.name, "serviceAccountEmail": "projects/" + s.options.Project + "/serviceAccounts/" + s.options.Number + "-compute@developer.gserviceaccount.com"}, nil
		}},
		{"GET", builds, func(s *Server, c *call) (any, error) {
			return Object{"builds": s.children("cloudbuild", c.args[1], "builds")}, nil
		}},
		{"POST", builds, (*Server).createBuild},
	}
}

func (s *Server) createBuild(c *call) (any, error) {
	if len(list(c.body, "steps")) == 0 {
		return nil, fail(400, "invalid build: must specify at least one step")
	}
	if account := text(c.body, "serviceAccount"); account != "" {
		if err := s.checkAccount(lastPart(account)); err != nil {
			return nil, err
		}
		if text(c.body, "logsBucket") == "" && dig(c.body, "options", "logging") == nil {
			return nil, fail(400, "if 'build.service_account' is specified, the build must specify 'build.logs_bucket' or a logging option")
		}
	}
	build, err := s.substitute(c.body)
	if err != nil {
		return nil, err
	}
	done, err := s.build(c.args[1], build)
	if err != nil {
		return nil, err
	}
	return s.done(c.api, c.args[1], "google.devtools.cloudbuild.v1.Build",
		Object{"@type": "type.googleapis.com/google.devtools.cloudbuild.v1.BuildOperationMetadata", "build": done}, done), nil
}

// build finishes a build at once: its images are in their repositories, as if its steps had run.
func (s *Server) build(parent string, b Object) (Object, error) {
	s.seq++
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", s.seq)
	o := clone(b)
	o["id"], o["projectId"], o["status"], o["name"] = id, s.options.Project, "SUCCESS", parent+"/builds/"+id
	o["createTime"], o["startTime"], o["finishTime"] = now(), now(), now()
	o["logUrl"] = "https://console.cloud.google.com/cloud-build/builds/" + id
	sub(o, "options")["logging"] = "CLOUD_LOGGING_ONLY"
	images := []any{}
	for _, uri := range list(o, "images") {
		if err := s.push(fmt.Sprint(uri)); err != nil {
			return nil, err
		}
		images = append(images, Object{"name": uri, "digest": digestOf(fmt.Sprint(uri))})
	}
	o["results"] = Object{"images": images}
	s.resources["cloudbuild/"+text(o, "name")] = o
	s.resources["cloudbuild/projects/"+s.options.Project+"/builds/"+id] = o
	return o, nil
}

var (
	substitution = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Z_][A-Z0-9_]*)`)
	builtin      = set(`PROJECT_ID PROJECT_NUMBER BUILD_ID LOCATION TRIGGER_NAME SERVICE_ACCOUNT SERVICE_ACCOUNT_EMAIL REPO_NAME REPO_FULL_NAME
BRANCH_NAME TAG_NAME REF_NAME REVISION_ID COMMIT_SHA SHORT_SHA`)
)

// substitute fills in $PROJECT_ID, ${_REGION} and so on, and refuses what Cloud Build refuses: a name
// that is not known, a value that is not used.
func (s *Server) substitute(build Object) (Object, error) {
	b := clone(build)
	values, _ := b["substitutions"].(Object)
	delete(b, "substitutions")
	template, _ := json.Marshal(b)
	used, missing := map[string]bool{}, ""
	known := map[string]string{"PROJECT_ID": s.options.Project, "PROJECT_NUMBER": s.options.Number, "BUILD_ID": "00000000-0000-4000-8000-000000000000", "LOCATION": "global"}
	filled := substitution.ReplaceAllStringFunc(string(template), func(t string) string {
		m := substitution.FindStringSubmatch(t)
		name := m[1] + m[2]
		if name == "" {
			return t
		}
		used[name] = true
		if v, ok := values[name].(string); ok {
			quoted, _ := json.Marshal(v)
			return string(quoted[1 : len(quoted)-1])
		}
		if !builtin[name] {
			missing = name
		}
		return known[name] // empty for what only a trigger knows
	})
	if missing != "" {
		return nil, fail(400, "invalid build: invalid value for 'build.substitutions': key in the template %q is not a valid built-in substitution", missing)
	}
	for name := range values {
		if !used[name] {
			return nil, fail(400, "invalid build: invalid value for 'build.substitutions': key %q in the substitution data is not matched in the template", name)
		}
	}
	b = Object{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(filled, "$$", "$")), &b); err != nil {
		return nil, fail(400, "invalid build after substitution: %v", err)
	}
	if values != nil {
		b["substitutions"] = values
	}
	return b, nil
}
