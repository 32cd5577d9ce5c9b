package standin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// discovery holds requests against Google's own description of its APIs, which the Go module
// google.golang.org/api carries as JSON files. nil: nothing is checked.
type discovery struct {
	dir  string
	docs map[string]*description
}

// description is one API in one version.
type description struct {
	ServicePath string              `json:"servicePath"`
	Parameters  map[string]*schema  `json:"parameters"`
	Schemas     map[string]*schema  `json:"schemas"`
	Methods     map[string]*method  `json:"methods"`
	Resources   map[string]*methods `json:"resources"`
	flat        []*method
}

type methods struct {
	Methods   map[string]*method  `json:"methods"`
	Resources map[string]*methods `json:"resources"`
}

type method struct {
	ID         string             `json:"id"`
	HTTPMethod string             `json:"httpMethod"`
	Path       string             `json:"path"`
	FlatPath   string             `json:"flatPath"`
	Parameters map[string]*schema `json:"parameters"`
	Request    *schema            `json:"request"`
	re         *regexp.Regexp
}

func openDiscovery(dir string) (*discovery, error) {
	if dir == "" {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "v1", "run-api.json")); err != nil {
		return nil, fmt.Errorf("descriptions of the APIs: %w", err)
	}
	return &discovery{dir: dir, docs: map[string]*description{}}, nil
}

// load returns the description, nil where there is none.
func (d *discovery) load(api, version string) *description {
	key := api + "/" + version
	if doc, ok := d.docs[key]; ok {
		return doc
	}
	d.docs[key] = nil
	data, err := os.ReadFile(filepath.Join(d.dir, api, version, api+"-api.json"))
	if err != nil {
		return nil
	}
	doc := &description{}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil
	}
	doc.flatten(&methods{doc.Methods, doc.Resources})
	slices.SortFunc(doc.flat, func(a, b *method) int { return strings.Compare(a.ID, b.ID) })
	d.docs[key] = doc
	return doc
}

func (doc *description) flatten(ms *methods) {
	for _, m := range ms.Methods {
		path := m.FlatPath
		if path == "" {
			path = m.Path
		}
		m.re = pathExpression(doc.ServicePath + path)
		doc.flat = append(doc.flat, m)
	}
	for _, r := range ms.Resources {
		doc.flatten(r)
	}
}

// pathExpression turns v1/{name}/x and v1/{+name}:y into what matches them.
func pathExpression(path string) *regexp.Regexp {
	var re strings.Builder
	for path != "" {
		literal, rest, ok := strings.Cut(path, "{")
		re.WriteString(regexp.QuoteMeta(literal))
		if !ok {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		if strings.HasPrefix(name, "+") {
			re.WriteString(".+")
		} else {
			re.WriteString("[^/:]+")
		}
		path = after
	}
	return regexp.MustCompile("^" + re.String() + "$")
}

// check finds the methods that c may be, and refuses what none of them takes.
func (d *discovery) check(c *call) error {
	if d == nil || strings.Contains(c.path, "upload/") {
		return nil
	}
	version := c.version
	if version == "" && strings.HasPrefix(c.path, "apis/") {
		version = "v1"
	}
	doc := d.load(c.api, version)
	if doc == nil {
		return nil
	}
	var first error
	for _, m := range doc.flat {
		if m.HTTPMethod != c.method || !m.re.MatchString(c.path) {
			continue
		}
		c.methods = append(c.methods, m.ID)
		err := doc.checkCall(m, c)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = unknown(404, "Method not found: %s /%s is no method of %s %s", c.method, c.path, c.api, version)
	}
	return first
}

func (doc *description) checkCall(m *method, c *call) error {
	for name, values := range c.query {
		p := m.Parameters[name]
		if p == nil {
			p = doc.Parameters[name]
		}
		if p == nil && name == "returnPartialSuccess" { // Compute dropped it lately, gcloud still sends it
			continue
		}
		if p == nil {
			return unknown(400, "Invalid JSON payload received. Unknown name %q: Cannot bind query parameter.", name)
		}
		for _, v := range values {
			if len(p.Enum) > 0 && !slices.Contains(p.Enum, v) && name != "$.xgafv" {
				return unknown(400, "Invalid value at '%s': %q", name, v)
			}
		}
	}
	if m.Request == nil {
		if len(c.body) > 0 {
			return unknown(400, "%s takes no body", m.ID)
		}
		return nil
	}
	if at, wrong := doc.validate(m.Request, c.body, ""); wrong != "" {
		return unknown(400, "Invalid JSON payload received. %s at '%s'", wrong, at)
	}
	return nil
}
