package standin

import "fmt"

func identities() []route {
	const role = `projects/[^/]+/roles/[\w.]+`
	return []route{
		{"GET", `(projects/[^/]+)/serviceAccounts`, func(s *Server, _ *call) (any, error) {
			return Object{"accounts": s.children("iam", "projects/"+s.options.Project, "serviceAccounts")}, nil
		}},
		{"POST", `(projects/[^/]+/serviceAccounts)`, (*Server).createAccount},
		{"GET", `(projects/[^/]+)/roles`, func(s *Server, c *call) (any, error) {
			return Object{"roles": s.children("iam", c.args[1], "roles")}, nil
		}},
		{"POST", `(projects/[^/]+/roles)`, (*Server).createRole},
		{"PATCH", role, (*Server).updateRole},
		{"POST", `permissions:queryTestablePermissions`, func(*Server, *call) (any, error) {
			testable := []any{}
			for _, p := range sortedKeys(permissions) {
				testable = append(testable, Object{"name": p, "stage": "GA"})
			}
			return Object{"permissions": testable}, nil
		}},
		{"POST", `(` + role + `):undelete`, (*Server).undeleteRole},
		{"DELETE", role, (*Server).deleteRole},
	}
}

func (s *Server) createAccount(c *call) (any, error) {
	id := text(c.body, "accountId")
	if match(`[a-z][-a-z0-9]{4,28}[a-z0-9]`, id) == nil {
		return nil, fail(400, "Invalid service account ID %q: 6 to 30 lower-case letters, digits and dashes.", id)
	}
	email := id + "@" + s.options.Project + ".iam.gserviceaccount.com"
	s.seq++
	o := clone(sub(c.body, "serviceAccount"))
	o["name"], o["email"], o["projectId"] = c.args[1]+"/"+email, email, s.options.Project
	o["uniqueId"], o["etag"] = fmt.Sprint(100000000000000000+s.seq), s.etag()
	if err := s.create("iam", c.args[1]+"/"+email, o); err != nil {
		return nil, fail(409, "Service account %s already exists within project projects/%s.", id, s.options.Project)
	}
	return o, nil
}

// A custom role that was deleted keeps its name for a week: it has to be undeleted, not made again.

func (s *Server) createRole(c *call) (any, error) {
	name := c.args[1] + "/" + text(c.body, "roleId")
	if s.deleted[name] {
		return nil, fail(400, "You can't create a role with role_id (%s) where there is an existing role with that role_id in a deleted state.", text(c.body, "roleId"))
	}
	if err := checkPermissions(c.body["role"]); err != nil {
		return nil, err
	}
	o := clone(sub(c.body, "role"))
	o["name"], o["etag"] = name, s.etag()
	if err := s.create("iam", name, o); err != nil {
		return nil, fail(409, "A role named %s in %s already exists.", text(c.body, "roleId"), c.args[1])
	}
	return o, nil
}

func (s *Server) updateRole(c *call) (any, error) {
	old, err := s.get("iam", c.name)
	if err != nil {
		return nil, err
	}
	if s.deleted[c.name] {
		return nil, fail(400, "The role %s is deleted.", c.name)
	}
	if err := checkPermissions(c.body); err != nil {
		return nil, err
	}
	o := patch(old, c.body, c.query.Get("updateMask"))
	o["name"], o["etag"] = c.name, s.etag()
	s.resources["iam/"+c.name] = o
	return o, nil
}

func (s *Server) deleteRole(c *call) (any, error) {
	o, err := s.get("iam", c.name)
	if err != nil {
		return nil, err
	}
	s.deleted[c.name] = true
	o["deleted"] = true
	return o, nil
}

func (s *Server) undeleteRole(c *call) (any, error) {
	o, err := s.get("iam", c.args[1])
	if err != nil {
		return nil, err
	}
	delete(s.deleted, c.args[1])
	delete(o, "deleted")
	return o, nil
}

// permissions are those near our purpose: one that is not here is taken for a misspelling.
var permissions = set(`compute.addresses.use compute.disks.create compute.disks.delete compute.disks.get compute.disks.list compute.disks.setLabels
compute.disks.use compute.firewalls.get compute.globalOperations.get compute.images.useReadOnly compute.instances.create compute.instances.delete
compute.instances.get compute.instances.getSerialPortOutput compute.instances.list compute.instances.setLabels compute.instances.setMetadata
compute.instances.setServiceAccount compute.instances.setTags compute.instances.start compute.instances.stop compute.networks.use
compute.networks.useExternalIp compute.projects.get compute.subnetworks.use compute.subnetworks.useExternalIp compute.zoneOperations.get
compute.zoneOperations.list compute.zones.get compute.zones.list iam.serviceAccounts.actAs`)

func checkPermissions(role any) error {
	for _, p := range list(role, "includedPermissions") {
		if !permissions[fmt.Sprint(p)] {
			return fail(400, "Permission %v is not valid.", p)
		}
	}
	return nil
}
