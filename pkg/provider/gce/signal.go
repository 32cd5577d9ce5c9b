package gce

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/googleapi"
)

// verb is what was asked of the API: some answers mean different things to different questions.
type verb string

const (
	verbCreate verb = "create"
	verbGet    verb = "get"
	verbDelete verb = "delete"
	verbList   verb = "list"
	verbLaunch verb = "launch" // what became of an accepted create
)

// signal is what the cloud said, taken apart for the classification table.
type signal struct {
	verb    verb
	http    int           // status of the answer or of the failed operation; 0 when nothing was answered
	codes   []string      // the cloud's own codes as spelled by it, the most specific kind first
	message string        // for people; the table looks at it only where no code tells
	wait    time.Duration // the least time to wait, where the cloud said one
	name    string        // the resource asked about, for messages
}

// signalOf takes an error of a call apart. The client library wraps one error type in another, its
// gRPC-like status says PermissionDenied for a spent rate limit, and its parsed details are empty as
// soon as the old errors list stands beside them: so the answer itself is read.
func signalOf(v verb, err error) signal {
	s := signal{verb: v, message: err.Error()}
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return s
	}
	s.http, s.message, s.wait = answer.Code, answer.Message, retryAfter(answer.Header)
	for _, detail := range answer.Details {
		s.addDetail(detail)
	}
	for _, item := range answer.Errors {
		s.add(item.Reason)
	}
	if s.message == "" { // a front end's page instead of the API's JSON
		s.message = http.StatusText(answer.Code)
	}
	return s
}

// addDetail reads the details that tell something: the code in its new spelling, and how long to wait.
func (s *signal) addDetail(detail any) {
	members, ok := detail.(map[string]any)
	if !ok {
		return
	}
	kind, _ := members["@type"].(string)
	switch base(kind) {
	case "google.rpc.ErrorInfo":
		reason, _ := members["reason"].(string)
		s.add(reason)
	case "google.rpc.RetryInfo":
		delay, _ := members["retryDelay"].(string)
		if wait, err := time.ParseDuration(delay); err == nil {
			s.wait = max(s.wait, wait)
		}
	}
}

// failureOf takes the error of an operation apart; ok is false when it has none. An error may come
// without an HTTP status, and then the client library's own polling would call it a success.
func failureOf(v verb, op *computepb.Operation) (s signal, ok bool) {
	s = signal{verb: v, http: int(op.GetHttpErrorStatusCode()), message: op.GetHttpErrorMessage()}
	for i, e := range op.GetError().GetErrors() {
		s.add(e.GetCode())
		if i == 0 {
			s.message = e.GetMessage()
		}
	}
	return s, len(s.codes) > 0 || s.http >= 300
}

func (s *signal) add(code string) {
	if code != "" {
		s.codes = append(s.codes, code)
	}
}

// canonical makes one of the API's two spellings: rateLimitExceeded and RATE_LIMIT_EXCEEDED are one
// code, and which of them comes depends on the method and on the version of the API.
func canonical(code string) string {
	return strings.ToUpper(strings.ReplaceAll(code, "_", ""))
}

// retryAfter reads the header's form in seconds; the API sends no dates in it.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
