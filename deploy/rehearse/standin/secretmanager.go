package standin

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"strings"
)

func secretManager() []route {
	return []route{
		{"GET", `(projects/[^/]+)/secrets`, func(s *Server, c *call) (any, error) {
			return Object{"secrets": s.children("secretmanager", c.args[1], "secrets")}, nil
		}},
		{"POST", `(projects/[^/]+/secrets)`, (*Server).createSecret},
		{"POST", `(projects/[^/]+/secrets/[^/]+):addVersion`, (*Server).addVersion},
		{"GET", `(projects/[^/]+/secrets/[^/]+)/versions`, func(s *Server, c *call) (any, error) {
			return Object{"versions": s.children("secretmanager", c.args[1], "versions")}, nil
		}},
		{"PATCH", `projects/[^/]+/secrets/[^/:]+`, func(s *Server, c *call) (any, error) {
			old, err := s.get("secretmanager", c.name)
			if err != nil {
				return nil, err
			}
			s.resources["secretmanager/"+c.name] = patch(old, c.body, c.query.Get("updateMask"))
			return s.resources["secretmanager/"+c.name], nil
		}},
	}
}

func (s *Server) createSecret(c *call) (any, error) {
	id := c.query.Get("secretId")
	if match(`[A-Za-z0-9_-]{1,255}`, id) == nil {
		return nil, fail(400, "Invalid secret id %q", id)
	}
	if dig(c.body, "replication", "automatic") == nil && dig(c.body, "replication", "userManaged") == nil {
		return nil, fail(400, "The secret's replication is required.")
	}
	o := clone(c.body)
	o["name"], o["createTime"], o["etag"] = c.args[1]+"/"+id, now(), s.etag()
	return o, s.create("secretmanager", c.args[1]+"/"+id, o)
}

func (s *Server) addVersion(c *call) (any, error) {
	if _, err := s.get("secretmanager", c.args[1]); err != nil {
		return nil, err
	}
	n := len(s.children("secretmanager", c.args[1], "versions")) + 1
	v := Object{"name": fmt.Sprintf("%s/versions/%d", c.args[1], n), "state": "ENABLED", "createTime": now(), "etag": s.etag()}
	if want := text(c.body, "payload", "dataCrc32c"); want != "" {
		data, err := base64.StdEncoding.DecodeString(text(c.body, "payload", "data"))
		if sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); err != nil || fmt.Sprint(sum) != want {
			return nil, fail(400, "The payload's checksum does not match.")
		}
		v["clientSpecifiedPayloadChecksum"] = true
	}
	s.resources["secretmanager/"+text(v, "name")] = v
	return v, nil
}

// checkSecret refuses what a revision that mounts the secret would stumble over at its start.
func (s *Server) checkSecret(name, version, account string) error {
	full := "projects/" + s.options.Project + "/secrets/" + name
	if !s.has("secretmanager", full) {
		return fail(400, "Secret %s was not found", full)
	}
	versions := s.children("secretmanager", full, "versions")
	if version == "latest" && len(versions) == 0 || version != "latest" && !s.has("secretmanager", full+"/versions/"+version) {
		return fail(400, "Secret %s/versions/%s was not found", full, version)
	}
	if !s.holds("secretmanager/"+full, "roles/secretmanager.secretAccessor", "serviceAccount:"+account) {
		return fail(400, "Permission denied on secret: %s/versions/%s for Revision service account %s.", full, version, account)
	}
	return nil
}

func lastPart(name string) string { return name[strings.LastIndex(name, "/")+1:] }
