package gce

import (
	"fmt"
	"net/http"
	"regexp"
	"time"
)

var requestIDShape = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

const zeroRequestID = "00000000-0000-0000-0000-000000000000"

// requestIDOf returns the request id and the operation that it was given to before, if any.
func (s *Server) requestIDOf(r *http.Request) (id string, earlier *operation, bad *answer) {
	id = r.URL.Query().Get("requestId")
	if id == "" {
		return "", nil, nil
	}
	if !requestIDShape.MatchString(id) || id == zeroRequestID {
		a := invalid("requestId", id, "Must be a valid, non-zero UUID.")
		return id, nil, &a
	}
	return id, s.requests[id], nil
}

// insert answers instances.insert. Faults that the real API finds only later are found later here.
func (s *Server) insert(r *http.Request, now time.Time) answer {
	k := key{project: r.PathValue("project"), zone: r.PathValue("zone")}
	id, earlier, bad := s.requestIDOf(r)
	if bad != nil {
		return *bad
	}
	var body resource
	if err := decode(r.Body, &body); err != nil {
		return refuse(http.StatusBadRequest, "parseError", "Invalid JSON payload received: %s", err)
	}
	k.name = body.Name
	if earlier != nil {
		return ok(earlier.body(now))
	}
	if problems := validate(k, &body); len(problems) > 0 {
		return answerOf(problems)
	}
	if s.instances[k] != nil {
		return refuse(http.StatusConflict, "alreadyExists", "The resource 'projects/%s/zones/%s/instances/%s' already exists", k.project, k.zone, k.name)
	}
	failure := s.takeOperationFault(k)
	if failure == nil && s.opts.Quota > 0 && len(s.instances) >= s.opts.Quota {
		failure = &OperationError{Code: "QUOTA_EXCEEDED", Message: fmt.Sprintf("Quota 'INSTANCES' exceeded.  Limit: %d.0 globally.", s.opts.Quota)}
	}
	s.serial++
	vm := &instance{key: k, id: s.serial, made: now, staged: now.Add(s.opts.Provision), body: body}
	vm.booted = vm.staged.Add(s.opts.Boot)
	op := s.newOperation("insert", k, vm.id, id, now, s.opts.Provision)
	if failure != nil {
		op.failure = failure
		if failure.After > 0 {
			op.done = now.Add(failure.After)
		}
		return ok(op.body(now))
	}
	if sch := body.Scheduling; sch != nil && sch.MaxRunDuration != nil {
		vm.stop(vm.booted.Add(time.Duration(sch.MaxRunDuration.Seconds)*time.Second), s.opts.Stop, sch.InstanceTerminationAction == "DELETE")
	}
	s.instances[k] = vm
	return ok(op.body(now))
}

// get answers instances.get.
func (s *Server) get(r *http.Request, now time.Time) answer {
	k := key{r.PathValue("project"), r.PathValue("zone"), r.PathValue("name")}
	vm := s.instances[k]
	if vm == nil {
		return absent("instances", k)
	}
	return ok(vm.resource(now))
}

// delete answers instances.delete.
func (s *Server) delete(r *http.Request, now time.Time) answer {
	k := key{r.PathValue("project"), r.PathValue("zone"), r.PathValue("name")}
	id, earlier, bad := s.requestIDOf(r)
	switch {
	case bad != nil:
		return *bad
	case earlier != nil:
		return ok(earlier.body(now))
	}
	vm := s.instances[k]
	if vm == nil {
		return absent("instances", k)
	}
	vm.stop(now, s.opts.Stop, true)
	return ok(s.newOperation("delete", k, vm.id, id, now, s.opts.Stop).body(now))
}
