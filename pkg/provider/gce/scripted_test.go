package gce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// answer is what the scripted API says.
type answer struct {
	status int
	body   string
	header http.Header
}

// envelope is the API's error answer: code, message and the old reason; details are optional.
func envelope(status int, reason, message string, details ...string) answer {
	text, _ := json.Marshal(message)
	body := fmt.Sprintf(`{"error": {"code": %d, "message": %s`, status, text)
	if reason != "" {
		body += fmt.Sprintf(`, "errors": [{"message": %s, "domain": "global", "reason": %q}]`, text, reason)
	}
	if len(details) > 0 {
		body += `, "details": [` + strings.Join(details, ",") + `]`
	}
	return answer{status: status, body: body + "}}"}
}

func errorInfo(reason string) string {
	return fmt.Sprintf(`{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": %q, "domain": "googleapis.com",
		"metadata": {"service": "compute.googleapis.com", "consumer": "projects/11111111"}}`, reason)
}

// operationDone is an operation that was accepted and failed.
func operationDone(httpStatus int, code, message string, details ...string) string {
	text, _ := json.Marshal(message)
	status := ""
	if httpStatus != 0 {
		status = fmt.Sprintf(`, "httpErrorStatusCode": %d, "httpErrorMessage": %q`, httpStatus, strings.ToUpper(http.StatusText(httpStatus)))
	}
	return fmt.Sprintf(`{"kind": "compute#operation", "id": "3138785068221217850", "name": "operation-1728938708258-62475e98b4d71-14d19ec0-defb4629",
		"zone": "https://www.googleapis.com/compute/v1/projects/crawl-project/zones/us-east1-b", "operationType": "insert",
		"targetLink": "https://www.googleapis.com/compute/v1/projects/crawl-project/zones/us-east1-b/instances/proxy-a",
		"targetId": "5259249240161292536", "status": "DONE", "user": "USER", "progress": 100,
		"insertTime": "2024-10-14T13:45:09.545-07:00", "startTime": "2024-10-14T13:45:09.546-07:00", "endTime": "2024-10-14T13:45:15.481-07:00",
		"error": {"errors": [{"code": %q, "message": %s, "errorDetails": [%s]}]}%s}`, code, text, strings.Join(details, ","), status)
}

// scripted returns a provider whose API answers every call to a path that ends in instances or an
// instance with a; lists are empty and operations are op.
func scripted(t *testing.T, a answer, op string) *Provider {
	t.Helper()
	return served(t, func(w http.ResponseWriter, r *http.Request) {
		say := a
		switch {
		case strings.Contains(r.URL.Path, "/operations/"):
			say = answer{status: http.StatusOK, body: op}
		case strings.HasSuffix(r.URL.Path, "/aggregated/instances") && strings.Contains(r.URL.RawQuery, "filter=name"):
			say = answer{status: http.StatusOK, body: `{}`}
		}
		for name, values := range say.header {
			w.Header()[name] = values
		}
		w.WriteHeader(say.status)
		fmt.Fprint(w, say.body)
	})
}

// served returns a provider whose API is h.
func served(t *testing.T, h http.HandlerFunc) *Provider {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	p, err := Open(Settings{Project: project, Endpoint: server.URL}, newClock().Now)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// put makes the call that a row is about and returns its error.
func put(t *testing.T, p *Provider, v verb) error {
	t.Helper()
	ref := provider.Ref{Name: "proxy-a", Zone: zone, Operation: zone + "/operation-1"}
	switch v {
	case verbCreate:
		_, err := p.Create(t.Context(), request("proxy-a"))
		return err
	case verbGet, verbLaunch:
		_, err := p.Get(t.Context(), ref)
		return err
	case verbDelete:
		return p.Delete(t.Context(), ref)
	}
	_, err := p.ListByTag(t.Context(), owner)
	return err
}
