package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

func artifactRegistry() []route {
	const repositories = `(projects/[^/]+/locations/[^/]+)/repositories`
	return []route{
		{"GET", `projects/[^/]+/vpcscConfig|projects/[^/]+/projectSettings`, func(_ *Server, c *call) (any, error) { return Object{"name": c.name}, nil }},
		{"GET", repositories, func(s *Server, c *call) (any, error) {
			return Object{"repositories": s.children("artifactregistry", c.args[1], "repositories")}, nil
		}},
		{"POST", repositories, (*Server).createRepository},
		{"PATCH", repositories + `/[^/]+`, func(s *Server, c *call) (any, error) {
			old, err := s.get("artifactregistry", c.name)
			if err != nil {
				return nil, err
			}
			s.resources["artifactregistry/"+c.name] = patch(old, c.body, c.query.Get("updateMask"))
			return s.resources["artifactregistry/"+c.name], nil
		}},
		{"GET", `(` + repositories + `/[^/]+)/dockerImages`, func(s *Server, c *call) (any, error) {
			if _, err := s.get("artifactregistry", c.args[1]); err != nil {
				return nil, err
			}
			return Object{"dockerImages": s.children("artifactregistry", c.args[1], "dockerImages")}, nil
		}},
	}
}

func (s *Server) createRepository(c *call) (any, error) {
	id := c.query.Get("repositoryId")
	if match(`[a-z]([a-z0-9-]{0,61}[a-z0-9])?`, id) == nil {
		return nil, fail(400, "Invalid repository id %q", id)
	}
	if text(c.body, "format") == "" {
		return nil, fail(400, "The repository's format is required.")
	}
	o := clone(c.body)
	o["name"], o["createTime"] = c.args[1]+"/repositories/"+id, now()
	if err := s.create("artifactregistry", text(o, "name"), o); err != nil {
		return nil, fail(409, "the repository already exists")
	}
	return s.done(c.api, c.args[1], "google.devtools.artifactregistry.v1.Repository", Object{}, o), nil
}

// image splits LOCATION-docker.pkg.dev/PROJECT/REPOSITORY/NAME[:TAG|@DIGEST].
func image(uri string) (repository, name string, ok bool) {
	m := match(`([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/]+)/(.+)`, uri)
	if m == nil {
		return "", "", false
	}
	return "projects/" + m[2] + "/locations/" + m[1] + "/repositories/" + m[3], m[4], true
}

// digestOf is what an image of this name and tag is given.
func digestOf(uri string) string {
	sum := sha256.Sum256([]byte(uri))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// push stores an image that a build made.
func (s *Server) push(uri string) error {
	repository, name, ok := image(uri)
	if !ok {
		return nil
	}
	if !s.has("artifactregistry", repository) {
		return fail(400, "Image '%s' not found: there is no %s.", uri, repository)
	}
	name, tag, _ := strings.Cut(name, ":")
	full := repository + "/dockerImages/" + name + "@" + digestOf(uri)
	base, _, _ := cutLast(uri, ":")
	s.resources["artifactregistry/"+full] = Object{"name": full, "uri": base + "@" + digestOf(uri), "tags": []any{tag}, "uploadTime": now(), "updateTime": now(), "imageSizeBytes": "1"}
	return nil
}

// checkImage refuses an image of this project that nobody pushed, and one that is named by a tag where
// there is no such repository.
func (s *Server) checkImage(uri string) error {
	repository, name, ok := image(uri)
	if !ok || !strings.HasPrefix(repository, "projects/"+s.options.Project+"/") {
		return nil
	}
	if !s.has("artifactregistry", repository) {
		return fail(400, "Image '%s' not found: there is no %s.", uri, repository)
	}
	if strings.Contains(name, "@") && !s.has("artifactregistry", repository+"/dockerImages/"+name) {
		return fail(400, "Image '%s' not found.", uri)
	}
	return nil
}
