package standin

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// call is one decoded request.
type call struct {
	header  http.Header
	host    string // without the port
	api     string // "run"; "x.run.app" for a service's own address
	version string // "v1"; may be empty
	region  string // of a regional host such as us-central1-run.googleapis.com
	method  string
	path    string // "v1/projects/p/secrets/s:addVersion", no leading slash
	name    string // the path without the version
	args    []string
	query   url.Values
	body    Object
	media   []byte // the bytes of an upload
	logged  any
	methods []string // API methods that it may be
}

var (
	regionalHost = regexp.MustCompile(`^((?:africa|asia|australia|europe|me|northamerica|southamerica|us)-[a-z]+[0-9]+)-(.+)$`)
	versionPart  = regexp.MustCompile(`^v[0-9]+[a-z0-9]*$`)
	// gcloud puts the boundary in single quotes, which the mime package does not take.
	boundary = regexp.MustCompile(`boundary=['"]?([^'";]+)`)
)

func newCall(r *http.Request, host string, raw []byte) *call {
	c := &call{header: r.Header, method: r.Method, query: r.URL.Query(), body: Object{}}
	if m := r.Header.Get("X-Http-Method-Override"); m != "" {
		c.method = m
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		raw = gunzip(raw)
	}
	c.host, _, _ = strings.Cut(host, ":")
	c.path = strings.TrimPrefix(r.URL.EscapedPath(), "/")
	if p, err := url.PathUnescape(c.path); err == nil {
		c.path = p
	}
	c.findAPI()
	c.findVersion()
	c.decode(raw)
	return c
}

// findAPI reads API and region off the host name.
func (c *call) findAPI() {
	h, ok := strings.CutSuffix(c.host, ".googleapis.com")
	if !ok {
		c.api = c.host
		return
	}
	if m := regionalHost.FindStringSubmatch(h); m != nil {
		c.region, h = m[1], m[2]
	}
	if service, region, ok := strings.Cut(h, "."); ok { // SERVICE.REGION.rep.googleapis.com
		h, c.region = service, strings.TrimSuffix(region, ".rep")
	}
	c.api = h
}

func (c *call) findVersion() {
	c.name = c.path
	first, rest, ok := strings.Cut(c.path, "/")
	if !ok {
		return
	}
	if versionPart.MatchString(first) {
		c.version, c.name = first, rest
	} else if version, name, ok := strings.Cut(rest, "/"); ok && first == c.api && versionPart.MatchString(version) { // compute/v1/...
		c.version, c.name = version, name
	}
}

func (c *call) decode(raw []byte) {
	contentType := c.header.Get("Content-Type")
	switch {
	case len(raw) == 0:
	case strings.HasPrefix(contentType, "multipart/"):
		c.decodeParts(contentType, raw)
	case json.Unmarshal(raw, &c.body) == nil:
		c.logged = clone(c.body)
	default:
		c.body, c.media, c.logged = Object{}, raw, describe(raw)
	}
	if strings.HasSuffix(c.path, ":addVersion") { // a secret's value stays out of the record
		c.logged = Object{"payload": Object{"data": "(not recorded)"}}
	}
}

func (c *call) decodeParts(contentType string, raw []byte) {
	m := boundary.FindStringSubmatch(contentType)
	if m == nil {
		return
	}
	parts := []any{}
	reader := multipart.NewReader(bytes.NewReader(raw), m[1])
	for {
		part, err := reader.NextPart()
		if err != nil {
			break
		}
		data, _ := io.ReadAll(part)
		var o Object
		if len(parts) == 0 && json.Unmarshal(data, &o) == nil {
			c.body = o
			parts = append(parts, o)
			continue
		}
		c.media = data
		parts = append(parts, describe(data))
	}
	c.logged = Object{"multipart": parts}
}

func gunzip(raw []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return raw
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return raw
	}
	return data
}
