package standin

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// canonical gives a relative resource name with the project's id, however the caller named the project.
func (s *Server) canonical(name string) string {
	if i := strings.Index(name, ".googleapis.com/"); i >= 0 {
		name = name[i+len(".googleapis.com/"):]
	}
	for _, alias := range []string{s.options.Number, "-"} { // "-" where the name says the project, as an account's does
		if rest, ok := strings.CutPrefix(name, "projects/"+alias+"/"); ok {
			return "projects/" + s.options.Project + "/" + rest
		}
	}
	return name
}

func (s *Server) has(api, name string) bool { return s.resources[api+"/"+s.canonical(name)] != nil }

func (s *Server) get(api, name string) (Object, error) {
	if o := s.resources[api+"/"+s.canonical(name)]; o != nil {
		return o, nil
	}
	return nil, fail(404, "Resource '%s' was not found", name)
}

func (s *Server) create(api, name string, o Object) error {
	key := api + "/" + s.canonical(name)
	if s.resources[key] != nil {
		return fail(409, "Resource '%s' already exists", name)
	}
	s.resources[key] = o
	return nil
}

// children lists the resources directly below parent.
func (s *Server) children(api, parent, collection string) []any {
	prefix := strings.TrimSuffix(api+"/"+s.canonical(parent), "/") + "/" + collection + "/"
	list := []any{}
	for _, k := range sortedKeys(s.resources) {
		if rest, ok := strings.CutPrefix(k, prefix); ok && !strings.Contains(rest, "/") {
			list = append(list, s.resources[k])
		}
	}
	return list
}

// patch merges body into old, by the update mask where there is one.
func patch(old, body Object, mask string) Object {
	out, body := clone(old), clone(body)
	if mask == "" || mask == "*" {
		maps.Copy(out, body)
		return out
	}
	for _, path := range strings.Split(mask, ",") {
		keys := strings.Split(path, ".")
		for i := range keys {
			keys[i] = camel(keys[i])
		}
		last := keys[len(keys)-1]
		target := out
		for _, k := range keys[:len(keys)-1] {
			target = sub(target, k)
		}
		if v := dig(body, keys...); v != nil {
			target[last] = v
		} else {
			delete(target, last) // named in the mask but not in the body: cleared
		}
	}
	return out
}

// camel turns a_b into aB.
func camel(s string) string {
	parts := strings.Split(s, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	return strings.Join(parts, "")
}

// dig walks down objects; nil where the path ends early.
func dig(o any, path ...string) any {
	for _, k := range path {
		m, ok := o.(Object)
		if !ok {
			return nil
		}
		o = m[k]
	}
	return o
}

func text(o any, path ...string) string {
	s, _ := dig(o, path...).(string)
	return s
}

func list(o any, path ...string) []any {
	l, _ := dig(o, path...).([]any)
	return l
}

// sub returns the object under k, making it where there is none.
func sub(o Object, k string) Object {
	m, _ := o[k].(Object)
	if m == nil {
		m = Object{}
		o[k] = m
	}
	return m
}

func clone(o Object) Object {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // it came from JSON
	}
	var out Object
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// etag is base64 in which neither alphabet's special characters occur: gcloud decodes etags and
// encodes them again in the alphabet of URLs.
func (s *Server) etag() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b)
	return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(b)))
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
