package standin

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Request is one request as it was recorded. Tokens and the values of secrets are not in it.
type Request struct {
	Seq     int
	Command string   // gcloud's own name of the command, such as gcloud.pubsub.topics.create
	Host    string   // as the client named it
	API     string   // such as pubsub
	Methods []string // ids of the API methods that it may be, such as pubsub.projects.topics.create
	Method  string
	Path    string // with a leading slash
	Query   map[string]string
	Auth    string // kind of credential: Bearer, or none
	Body    any    // JSON, or a description of bytes
	Status  int
	Error   string // what was wrong with it
	Unknown bool   // the stand-in has no such method, or the API's own description forbids the request
}

// Writes reports whether the request is one that changes something, and was not refused.
func (r Request) Writes() bool {
	if r.Method == "GET" || r.Status >= 300 || strings.HasSuffix(r.API, "run.app") {
		return false
	}
	for _, reading := range []string{":getIamPolicy", ":testIamPermissions", "/entries:list", "/entries:tail"} {
		if strings.HasSuffix(r.Path, reading) {
			return false
		}
	}
	return true
}

// Requests returns all requests so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

var commandName = regexp.MustCompile(`command/(\S+)`)

func (s *Server) record(c *call, status int, err *apiError) {
	s.seq++
	r := Request{Seq: s.seq, Host: c.host, API: c.api, Methods: c.methods, Method: c.method, Path: "/" + c.path, Query: map[string]string{}, Auth: "none", Body: c.logged, Status: status}
	if m := commandName.FindStringSubmatch(c.header.Get("User-Agent")); m != nil {
		r.Command = m[1]
	} else {
		r.Command, _, _ = strings.Cut(c.header.Get("User-Agent"), " ")
	}
	if h := c.header.Get("Authorization"); h != "" {
		r.Auth, _, _ = strings.Cut(h, " ")
	}
	for k, v := range c.query {
		if k != "alt" && k != "prettyPrint" {
			r.Query[k] = strings.Join(v, ",")
		}
	}
	if err != nil {
		r.Error, r.Unknown = err.message, err.unknown
	}
	s.requests = append(s.requests, r)
}

// describe stands for bytes that are no JSON: an archive by the names in it.
func describe(b []byte) Object {
	sum := sha256.Sum256(b)
	o := Object{"bytes": len(b), "sha256": hex.EncodeToString(sum[:])}
	if names := archived(b); names != nil {
		slices.Sort(names)
		o["files"] = names
	}
	return o
}

// archived returns the names of the files in a zip or a compressed tar, nil for other bytes.
func archived(b []byte) []string {
	var names []string
	if zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b))); err == nil {
		for _, f := range zr.File {
			if !strings.HasSuffix(f.Name, "/") {
				names = append(names, f.Name)
			}
		}
		return names
	}
	gz, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	for tr := tar.NewReader(gz); ; {
		h, err := tr.Next()
		if err != nil {
			return names
		}
		if h.Typeflag != tar.TypeDir {
			names = append(names, strings.TrimPrefix(h.Name, "./"))
		}
	}
}
