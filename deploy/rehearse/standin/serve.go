package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// apiError is a refusal, in the shape of the APIs.
type apiError struct {
	code    int
	status  string
	message string
	details []any
	unknown bool // our own gap, or against the API's description: a rehearsal must not pass over it
}

func (e *apiError) Error() string { return e.message }

func fail(code int, format string, args ...any) *apiError {
	status := map[int]string{400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ALREADY_EXISTS", 429: "RESOURCE_EXHAUSTED",
		500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE"}[code]
	return &apiError{code: code, status: status, message: fmt.Sprintf(format, args...)}
}

// conflict is a write on something that changed meanwhile.
func conflict(format string, args ...any) *apiError {
	e := fail(409, format, args...)
	e.status = "ABORTED"
	return e
}

// unknown is a request that the stand-in cannot answer, or that no such API could.
func unknown(code int, format string, args ...any) *apiError {
	e := fail(code, format, args...)
	e.unknown = true
	return e
}

// rawResponse is an answer that is no JSON object.
type rawResponse struct {
	status int
	header map[string]string
	body   string
}

// serve answers one request and records it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, host string) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := newCall(r, host, raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, err := s.answer(c)
	status := http.StatusOK
	var refusal *apiError
	if errors.As(err, &refusal) {
		status = refusal.code
		answer = refusal.object()
	}
	if special, ok := answer.(rawResponse); ok {
		for k, v := range special.header {
			w.Header().Set(k, v)
		}
		if special.status != 0 {
			status = special.status
		}
		s.record(c, status, refusal)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, special.body)
		return
	}
	s.record(c, status, refusal)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (e *apiError) object() Object {
	o := Object{"code": e.code, "message": e.message, "status": e.status,
		"errors": []any{Object{"message": e.message, "reason": strings.ToLower(e.status), "domain": "global"}}}
	if e.details != nil {
		o["details"] = e.details
	}
	return Object{"error": o}
}

func (s *Server) answer(c *call) (any, error) {
	for _, f := range s.faults {
		if f.left > 0 && f.match.MatchString(c.method+" "+c.host+"/"+c.path) {
			f.left--
			return nil, fail(f.status, "fault asked for by the rehearsal")
		}
	}
	if strings.HasSuffix(c.host, ".run.app") {
		return s.serveFunction(c)
	}
	routes := s.routes[c.api]
	if routes == nil {
		return nil, unknown(501, "the stand-in has no API %q (%s)", c.api, c.host)
	}
	if err := s.discovery.check(c); err != nil {
		return nil, err
	}
	if err := s.gate(c); err != nil {
		return nil, err
	}
	answer, err := s.route(routes, c)
	if answer == nil && err == nil {
		return nil, unknown(501, "the stand-in does not answer %s %s of %s", c.method, c.path, c.api)
	}
	return answer, err
}

var (
	projectPart  = regexp.MustCompile(`(?:^|/)(?:projects|namespaces)/([^/:]+)`)
	locationPart = regexp.MustCompile(`/(?:locations|regions)/([^/:]+)`)
)

// gate refuses other projects, places that do not exist and APIs that are not enabled.
func (s *Server) gate(c *call) error {
	m := projectPart.FindStringSubmatch(c.path)
	if m != nil && m[1] != s.options.Project && m[1] != s.options.Number && m[1] != "-" && m[1] != "_" {
		return fail(403, "Permission denied on resource project %s.", m[1])
	}
	if m := locationPart.FindStringSubmatch(c.path); m != nil && !validLocation(c.api, m[1]) {
		return fail(400, "Location %s is not found or access is unauthorized.", m[1])
	}
	if c.region != "" && !regions[c.region] {
		return fail(404, "no such regional host: %s", c.host)
	}
	switch c.api { // these need not be enabled: gcloud brings a project of its own
	case "serviceusage", "cloudresourcemanager", "storage", "logging", "appengine":
		return nil
	}
	if service := c.api + ".googleapis.com"; !s.enabled(service) {
		e := fail(403, "%s has not been used in project %s before or it is disabled.", service, s.options.Number)
		e.details = []any{Object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED", "domain": "googleapis.com",
			"metadata": Object{"consumer": "projects/" + s.options.Number, "service": service}}}
		return e
	}
	return nil
}

var regions = set(`africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
asia-southeast1 asia-southeast2 australia-southeast1 australia-southeast2 europe-central2 europe-north1 europe-southwest1 europe-west1
europe-west2 europe-west3 europe-west4 europe-west6 europe-west8 europe-west9 europe-west10 europe-west12 me-central1 me-central2 me-west1
northamerica-northeast1 northamerica-northeast2 southamerica-east1 southamerica-west1 us-central1 us-east1 us-east4 us-east5 us-south1
us-west1 us-west2 us-west3 us-west4`)

func validLocation(api, location string) bool {
	switch {
	case regions[location], location == "-", location == "global":
		return true
	case api == "firestore":
		return location == "nam5" || location == "eur3"
	case api == "artifactregistry":
		return location == "us" || location == "europe" || location == "asia"
	}
	return false
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
