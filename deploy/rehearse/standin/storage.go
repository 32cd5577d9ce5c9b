package standin

import (
	"crypto/md5" // what Cloud Storage answers for an upload
	"encoding/base64"
	"fmt"
	"strconv"
)

// upload is a resumable upload under way: it comes in two steps, the start and the bytes.
type upload struct{ bucket, name string }

func storage() []route {
	const bucket = `b/([^/]+)`
	return []route{
		{"POST|PUT", `(?:resumable/)?upload/storage/v1/b/([^/]+)/o`, (*Server).upload},
		{"POST", `b`, (*Server).createBucket},
		{"GET", `b`, func(s *Server, _ *call) (any, error) {
			return Object{"kind": "storage#buckets", "items": s.children("storage", "", "b")}, nil
		}},
		{"GET|PUT", bucket + `/iam`, (*Server).bucketPolicy},
		{"GET", bucket + `/storageLayout`, func(s *Server, c *call) (any, error) {
			if _, err := s.get("storage", "b/"+c.args[1]); err != nil {
				return nil, err
			}
			return Object{"kind": "storage#storageLayout", "bucket": c.args[1], "hierarchicalNamespace": Object{"enabled": false}}, nil
		}},
		{"GET", bucket + `/(managedFolders|folders)`, func(*Server, *call) (any, error) { return Object{"items": []any{}}, nil }},
		{"GET", bucket + `/o`, func(s *Server, c *call) (any, error) {
			return Object{"kind": "storage#objects", "items": s.children("storage", "b/"+c.args[1], "o")}, nil
		}},
		{"DELETE", `b/.+`, func(s *Server, c *call) (any, error) {
			if _, err := s.remove(c); err != nil {
				return nil, err
			}
			return rawResponse{status: 204}, nil
		}},
	}
}

func (s *Server) upload(c *call) (any, error) {
	if id := c.query.Get("upload_id"); id != "" {
		u, ok := s.uploads[id]
		if !ok {
			return nil, fail(404, "no such upload")
		}
		if m := match(`bytes (?:[0-9]+-([0-9]+)|\*)/([0-9]+|\*)`, c.header.Get("Content-Range")); m != nil {
			last, _ := strconv.Atoi(m[1])
			if total, _ := strconv.Atoi(m[2]); m[2] == "*" || m[1] != "" && last+1 < total {
				return rawResponse{status: 308, header: map[string]string{"Range": "bytes=0-" + m[1]}}, nil
			}
		}
		return s.putObject(u, c.media), nil
	}
	u := upload{c.args[1], c.query.Get("name")}
	if u.name == "" {
		u.name = text(c.body, "name")
	}
	if !s.has("storage", "b/"+u.bucket) {
		return nil, fail(404, "The specified bucket does not exist.")
	}
	if c.query.Get("uploadType") != "resumable" {
		return s.putObject(u, c.media), nil
	}
	id := fmt.Sprintf("up-%d", len(s.uploads)+1)
	s.uploads[id] = u
	return rawResponse{header: map[string]string{"Location": "https://" + c.host + "/" + c.path + "?uploadType=resumable&upload_id=" + id}}, nil
}

func (s *Server) putObject(u upload, data []byte) Object {
	s.seq++
	sum := md5.Sum(data)
	o := Object{"kind": "storage#object", "bucket": u.bucket, "name": u.name, "generation": fmt.Sprint(s.seq), "metageneration": "1",
		"size": fmt.Sprint(len(data)), "md5Hash": base64.StdEncoding.EncodeToString(sum[:]), "timeCreated": now(), "updated": now()}
	s.resources["storage/b/"+u.bucket+"/o/"+u.name] = o
	return o
}

func (s *Server) createBucket(c *call) (any, error) {
	id := text(c.body, "name")
	if match(`[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]`, id) == nil {
		return nil, fail(400, "Invalid bucket name: '%s'", id)
	}
	o := clone(c.body)
	o["kind"], o["id"], o["projectNumber"], o["timeCreated"] = "storage#bucket", id, s.options.Number, now()
	if err := s.create("storage", "b/"+id, o); err != nil {
		return nil, fail(409, "Your previous request to create the named bucket succeeded and you already own it.")
	}
	return o, nil
}

func (s *Server) bucketPolicy(c *call) (any, error) {
	if c.method == "GET" {
		return s.policy(c, "b/"+c.args[1], "getIamPolicy")
	}
	c.body = Object{"policy": c.body}
	return s.policy(c, "b/"+c.args[1], "setIamPolicy")
}
