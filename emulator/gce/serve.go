package gce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// answer is one HTTP answer.
type answer struct {
	status     int
	body       any
	retryAfter time.Duration
}

// handler answers a request; the server is locked and settled.
type handler func(r *http.Request, now time.Time) answer

// serve wraps a handler with what every method has: parameters, rate, faults, zones, the lock.
func (s *Server) serve(m Method, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		call := Call{Method: m, Zone: r.PathValue("zone"), Name: r.PathValue("name")}
		if m == Insert {
			call.Name = peekName(r)
		}
		fault := s.begin(call)
		if fault != nil && !fault.wait(r.Context()) {
			return
		}
		if fault != nil && fault.Status != 0 {
			a := refuse(fault.Status, fault.Reason, "%s", fault.message())
			a.retryAfter = fault.RetryAfter
			write(w, a)
			return
		}
		if fault != nil && fault.DropRequest {
			drop(w)
			return
		}
		a := s.locked(m, r, h)
		if fault != nil && fault.LoseAnswer {
			drop(w)
			return
		}
		write(w, a)
	}
}

// peekName returns the name in an insert's body, which can be read again.
func peekName(r *http.Request) string {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var named struct{ Name string }
	_ = json.Unmarshal(body, &named) // whatever is wrong with it the method itself says
	return named.Name
}

// maxCalls is how many calls are remembered at most: a server may run for weeks.
const maxCalls = 10_000

// begin notes the call and takes the fault that is meant for it.
func (s *Server) begin(call Call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == maxCalls {
		s.calls = append(s.calls[:0], s.calls[maxCalls/2:]...)
	}
	s.calls = append(s.calls, call)
	for i, f := range s.faults {
		if !f.meets(call) {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f
	}
	return nil
}

func (s *Server) locked(m Method, r *http.Request, h handler) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	s.settle(now)
	if s.spend(now) {
		return refuse(http.StatusForbidden, "rateLimitExceeded",
			"Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute.googleapis.com' for consumer 'project_number:1'.")
	}
	if a, bad := checkQuery(m, r); bad {
		return a
	}
	zone := r.PathValue("zone")
	switch {
	case zone == "":
	case !slices.Contains(s.opts.Zones, zone):
		return invalid("zone", zone, "Unknown zone.")
	case s.unreachable[zone]:
		return refuse(http.StatusServiceUnavailable, "backendError", "Internal error. Please try again or contact Google Support. (Code: 'EMULATED')")
	}
	return h(r, now)
}

// spend counts a request and reports whether it is one too many for this minute.
func (s *Server) spend(now time.Time) bool {
	if minute := now.Truncate(time.Minute); !minute.Equal(s.minute) {
		s.minute, s.spent = minute, 0
	}
	s.spent++
	return s.opts.PerMinute > 0 && s.spent > s.opts.PerMinute
}

// parameters are what each method takes besides those that all take.
var parameters = map[Method][]string{
	Insert:         {"requestId"},
	Delete:         {"requestId"},
	AggregatedList: {"filter", "maxResults", "pageToken", "orderBy", "includeAllScopes", "returnPartialSuccess"},
	ListOperations: {"filter", "maxResults", "pageToken", "orderBy", "returnPartialSuccess"},
}

func checkQuery(m Method, r *http.Request) (answer, bool) {
	for name := range r.URL.Query() {
		if !slices.Contains(parameters[m], name) && !slices.Contains([]string{"alt", "prettyPrint", "fields", "key", "$alt"}, name) {
			return refuse(http.StatusBadRequest, "invalidParameter", "Invalid query parameter %q.", name), true
		}
	}
	return answer{}, false
}

// errorBody is the API's error envelope.
type errorBody struct {
	Error errorMember `json:"error"`
}

type errorMember struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Errors  []errorItem `json:"errors"`
}

type errorItem struct {
	Message string `json:"message"`
	Domain  string `json:"domain"`
	Reason  string `json:"reason"`
}

func refuse(status int, reason, format string, args ...any) answer {
	message := fmt.Sprintf(format, args...)
	domain := "global"
	if reason == "rateLimitExceeded" {
		domain = "usageLimits"
	}
	return answer{status: status, body: errorBody{errorMember{status, message, []errorItem{{message, domain, reason}}}}}
}

func invalid(field, value, why string) answer {
	return refuse(http.StatusBadRequest, "invalid", "Invalid value for field '%s': '%s'. %s", field, value, why)
}

func absent(kind string, k key) answer {
	return refuse(http.StatusNotFound, "notFound", "The resource 'projects/%s/zones/%s/%s/%s' was not found", k.project, k.zone, kind, k.name)
}

func ok(body any) answer { return answer{status: http.StatusOK, body: body} }

func write(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(a.retryAfter/time.Second)))
	}
	w.WriteHeader(a.status)
	json.NewEncoder(w).Encode(a.body)
}

// drop ends the connection without an answer.
func drop(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}
