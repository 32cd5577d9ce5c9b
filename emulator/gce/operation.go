package gce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// operation is an operation with the times of its life; its status follows from these.
type operation struct {
	key       key // name is the operation's
	id        int64
	kind      string // insert, delete
	target    key
	targetID  int64
	requestID string
	made      time.Time
	done      time.Time
	failure   *OperationError
}

// operationBody is the operation resource.
type operationBody struct {
	Kind                string          `json:"kind"`
	ID                  string          `json:"id"`
	Name                string          `json:"name"`
	Zone                string          `json:"zone"`
	ClientOperationID   string          `json:"clientOperationId,omitempty"`
	OperationType       string          `json:"operationType"`
	TargetLink          string          `json:"targetLink"`
	TargetID            string          `json:"targetId,omitempty"`
	Status              string          `json:"status"`
	User                string          `json:"user"`
	Progress            int             `json:"progress"`
	InsertTime          string          `json:"insertTime"`
	StartTime           string          `json:"startTime"`
	EndTime             string          `json:"endTime,omitempty"`
	SelfLink            string          `json:"selfLink"`
	Error               json.RawMessage `json:"error,omitempty"`
	HTTPErrorStatusCode int             `json:"httpErrorStatusCode,omitempty"`
	HTTPErrorMessage    string          `json:"httpErrorMessage,omitempty"`
}

// newOperation makes an operation on target that is done after a while.
func (s *Server) newOperation(kind string, target key, targetID int64, requestID string, now time.Time, takes time.Duration) *operation {
	s.serial++
	op := &operation{
		key:  key{target.project, target.zone, fmt.Sprintf("operation-%d-%08x-%08x", now.UnixMilli(), s.serial, now.Nanosecond())},
		id:   s.serial,
		kind: kind, target: target, targetID: targetID, requestID: requestID, made: now, done: now.Add(takes),
	}
	s.operations[op.key] = op
	if requestID != "" {
		s.requests[requestID] = op
	}
	return op
}

// status of an operation: PENDING at once, RUNNING then, DONE at last.
func (op *operation) status(now time.Time) string {
	switch {
	case !now.Before(op.done):
		return "DONE"
	case now.After(op.made):
		return "RUNNING"
	}
	return "PENDING"
}

func (op *operation) body(now time.Time) operationBody {
	zone := link(op.key.project, "zones/"+op.key.zone)
	b := operationBody{
		Kind: "compute#operation", ID: fmt.Sprint(op.id), Name: op.key.name, Zone: zone,
		ClientOperationID: op.requestID, OperationType: op.kind,
		TargetLink: zone + "/instances/" + op.target.name, TargetID: fmt.Sprint(op.targetID),
		Status: op.status(now), User: "emulator@example.com",
		InsertTime: stamp(op.made), StartTime: stamp(op.made.Add(time.Millisecond)),
		SelfLink: zone + "/operations/" + op.key.name,
	}
	if b.Status != "DONE" {
		return b
	}
	b.Progress, b.EndTime = 100, stamp(op.done)
	if op.failure != nil {
		b.Error, b.HTTPErrorStatusCode = op.failure.body(op.target)
		b.HTTPErrorMessage = strings.ToUpper(http.StatusText(b.HTTPErrorStatusCode))
	}
	return b
}

// known are the codes whose message and status the server knows.
var known = map[string]struct {
	status  int
	message string
}{
	"ZONE_RESOURCE_POOL_EXHAUSTED":              {503, "The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request.  Try a different zone, or try again later."},
	"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": {503, "The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request.  '(resource type:compute)'."},
	"QUOTA_EXCEEDED":                            {403, "Quota 'INSTANCES' exceeded.  Limit: 24.0 globally."},
	"IP_SPACE_EXHAUSTED":                        {400, "IP space of 'projects/{project}/regions/default' is exhausted."},
	"RESOURCE_ALREADY_EXISTS":                   {409, "The resource 'projects/{project}/zones/{zone}/instances/{name}' already exists"},
	"RESOURCE_NOT_FOUND":                        {404, "The resource 'projects/{project}/zones/{zone}/instances/{name}' was not found"},
	"CONDITION_NOT_MET":                         {412, "Constraint constraints/compute.vmExternalIpAccess violated for project {project}."},
	"INTERNAL_ERROR":                            {500, "Internal error. Please try again or contact Google Support."},
}

func (e *OperationError) body(target key) (json.RawMessage, int) {
	status, message := e.Status, e.Message
	if status == 0 {
		status = known[e.Code].status
	}
	if message == "" {
		message = e.Code
		if k, ok := known[e.Code]; ok {
			message = strings.NewReplacer("{project}", target.project, "{zone}", target.zone, "{name}", target.name).Replace(k.message)
		}
	}
	body, _ := json.Marshal(map[string]any{"errors": []any{map[string]any{"code": e.Code, "message": message}}})
	return body, status
}

// getOperation answers zoneOperations.get.
func (s *Server) getOperation(r *http.Request, now time.Time) answer {
	k := key{r.PathValue("project"), r.PathValue("zone"), r.PathValue("name")}
	op := s.operations[k]
	if op == nil {
		return absent("operations", k)
	}
	return ok(op.body(now))
}

// ForgetOperations makes the server know no operation any more, as the API does with old ones.
func (s *Server) ForgetOperations() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.operations)
	clear(s.requests)
}

// link returns the full URL of a path below a project.
func link(project, path string) string {
	return "https://www.googleapis.com/compute/v1/projects/" + project + "/" + path
}

// trimProject returns a machine type's path from its zone on.
func trimProject(path string) string {
	if at := strings.Index(path, "zones/"); at >= 0 {
		return path[at:]
	}
	return path
}

// stamp writes a time as the API does: milliseconds, and the offset of its home.
func stamp(t time.Time) string {
	return t.In(time.FixedZone("", -7*3600)).Format("2006-01-02T15:04:05.000-07:00")
}
