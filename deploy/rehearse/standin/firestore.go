package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

const firestoreAdmin = "google.firestore.admin.v1."

func firestore() []route {
	const database = `(projects/[^/]+/databases/[^/]+)`
	return []route{
		{"GET", `(projects/[^/]+)/databases`, func(s *Server, c *call) (any, error) {
			return Object{"databases": s.children("firestore", c.args[1], "databases")}, nil
		}},
		{"POST", `(projects/[^/]+)/databases`, (*Server).createDatabase},
		{"PATCH", database, (*Server).patchDatabase},
		{"GET", database + `/collectionGroups/([^/]+)/(indexes|fields)`, (*Server).listIndexes},
		{"POST", database + `/collectionGroups/([^/]+)/indexes`, (*Server).createIndex},
		{"GET", database + `/collectionGroups/([^/]+)/fields/([^/]+)`, (*Server).getField},
		{"PATCH", database + `/collectionGroups/([^/]+)/fields/([^/]+)`, (*Server).patchField},
		{"POST", `(` + database + `)/backupSchedules`, func(s *Server, c *call) (any, error) {
			if _, err := s.get("firestore", c.args[1]); err != nil {
				return nil, err
			}
			s.seq++
			o := clone(c.body)
			o["name"] = c.args[1] + "/backupSchedules/" + strconv.Itoa(s.seq)
			return o, s.create("firestore", text(o, "name"), o)
		}},
		{"GET", database + `/backupSchedules`, func(s *Server, c *call) (any, error) {
			return Object{"backupSchedules": s.children("firestore", c.args[1], "backupSchedules")}, nil
		}},
	}
}

func (s *Server) createDatabase(c *call) (any, error) {
	id := c.query.Get("databaseId")
	if id != "(default)" && match(`[a-z][a-z0-9-]{2,61}[a-z0-9]`, id) == nil {
		return nil, fail(400, "Invalid database id %q", id)
	}
	location := text(c.body, "locationId")
	if !validLocation("firestore", location) || location == "global" || location == "-" {
		return nil, fail(400, "Invalid location %q", location)
	}
	if t := text(c.body, "type"); t != "FIRESTORE_NATIVE" {
		return nil, fail(400, "Invalid database type %q", t)
	}
	o := clone(c.body)
	o["name"], o["uid"], o["createTime"], o["etag"] = c.args[1]+"/databases/"+id, s.etag(), now(), s.etag()
	if err := s.create("firestore", text(o, "name"), o); err != nil {
		return nil, fail(409, "Database already exists. Please use another database_id")
	}
	return s.done(c.api, text(o, "name"), firestoreAdmin+"Database", Object{}, o), nil
}

func (s *Server) patchDatabase(c *call) (any, error) {
	old, err := s.get("firestore", c.name)
	if err != nil {
		return nil, err
	}
	o := patch(old, c.body, c.query.Get("updateMask"))
	s.resources["firestore/"+c.name] = o
	return s.done(c.api, c.name, firestoreAdmin+"Database", Object{}, o), nil
}

// listIndexes lists indexes or fields of one collection group, "-" meaning all.
func (s *Server) listIndexes(c *call) (any, error) {
	if _, err := s.get("firestore", c.args[1]); err != nil {
		return nil, err
	}
	group := regexp.QuoteMeta(c.args[2])
	if c.args[2] == "-" {
		group = `[^/]+`
	}
	found := []any{}
	for _, k := range sortedKeys(s.resources) {
		if match(regexp.QuoteMeta("firestore/"+c.args[1])+`/collectionGroups/`+group+`/`+c.args[3]+`/[^/]+`, k) != nil {
			found = append(found, s.resources[k])
		}
	}
	return Object{c.args[3]: found}, nil
}

func (s *Server) createIndex(c *call) (any, error) {
	if _, err := s.get("firestore", c.args[1]); err != nil {
		return nil, err
	}
	fields := list(c.body, "fields")
	if len(fields) < 2 {
		return nil, fail(400, "this index is not necessary, configure using single field index controls")
	}
	o := clone(c.body)
	if last := fields[len(fields)-1]; text(last, "fieldPath") != "__name__" { // Firestore adds the name itself
		o["fields"] = append(list(o, "fields"), Object{"fieldPath": "__name__", "order": text(last, "order")})
	}
	key, _ := json.Marshal([]any{c.args[2], fields, c.body["queryScope"]})
	sum := sha256.Sum256(key)
	o["state"], o["name"] = "READY", strings.Join([]string{c.args[1], "collectionGroups", c.args[2], "indexes", "CICAg" + hex.EncodeToString(sum[:6])}, "/")
	if err := s.create("firestore", text(o, "name"), o); err != nil {
		return nil, fail(409, "index already exists")
	}
	return s.done(c.api, c.args[1], firestoreAdmin+"Index", Object{"index": o["name"], "state": "SUCCESSFUL"}, o), nil
}

func (s *Server) getField(c *call) (any, error) {
	if _, err := s.get("firestore", c.args[1]); err != nil {
		return nil, err
	}
	if o := s.resources["firestore/"+c.name]; o != nil {
		return o, nil
	}
	return Object{"name": c.name, "indexConfig": Object{"usesAncestorConfig": true}}, nil
}

func (s *Server) patchField(c *call) (any, error) {
	if _, err := s.get("firestore", c.args[1]); err != nil {
		return nil, err
	}
	old := s.resources["firestore/"+c.name]
	if old == nil {
		old = Object{"indexConfig": Object{"usesAncestorConfig": true}}
	}
	o := patch(old, c.body, c.query.Get("updateMask"))
	o["name"] = c.name
	if ttl, ok := o["ttlConfig"].(Object); ok {
		ttl["state"] = "ACTIVE"
	}
	s.resources["firestore/"+c.name] = o
	return s.done(c.api, c.args[1], firestoreAdmin+"Field", Object{"field": c.name, "state": "SUCCESSFUL"}, o), nil
}
