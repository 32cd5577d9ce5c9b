package standin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// client reaches a stand-in as gcloud does: real host names, through the proxy, over TLS.
type client struct {
	t      *testing.T
	http   *http.Client
	server *Server
}

func start(t *testing.T, o Options) *client {
	t.Helper()
	o.Project, o.Number = "demo", "123456789012"
	s, err := New(o)
	require.NoError(t, err)
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(s.CA()))
	proxy, err := url.Parse(ts.URL)
	require.NoError(t, err)
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t, &http.Client{Transport: transport}, s}
}

func (c *client) do(method, target, body string, want int) Object {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, target, strings.NewReader(body))
	require.NoError(c.t, err)
	req.Header.Set("Authorization", "Bearer made-up")
	req.Header.Set("User-Agent", "google-cloud-sdk gcloud/0 command/gcloud.test")
	resp, err := c.http.Do(req)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, want, resp.StatusCode, "%s %s: %s", method, target, data)
	var o Object
	_ = json.Unmarshal(data, &o)
	return o
}

const (
	pub      = "https://pubsub.googleapis.com/v1/projects/demo/"
	crm      = "https://cloudresourcemanager.googleapis.com/v1/projects/demo"
	accounts = "https://iam.googleapis.com/v1/projects/demo/serviceAccounts"
	jobs     = "https://cloudscheduler.googleapis.com/v1/projects/demo/locations/us-central1/jobs"
	services = "https://us-central1-run.googleapis.com/apis/serving.knative.dev/v1/namespaces/demo/services"
)

func TestWhatIsMadeIsThereOnce(t *testing.T) {
	t.Parallel()
	c := start(t, Options{AllAPIs: true})
	c.do("GET", pub+"topics/probes", "", 404)
	c.do("PUT", pub+"topics/probes", `{}`, 200)
	c.do("PUT", pub+"topics/probes", `{}`, 409)
	require.Equal(t, "projects/demo/topics/probes", c.do("GET", pub+"topics/probes", "", 200)["name"])
	c.do("DELETE", pub+"topics/probes", "", 200)
	c.do("GET", pub+"topics/probes", "", 404)
}

func TestWrongOrderIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t, Options{AllAPIs: true})
	c.do("PUT", pub+"subscriptions/push", `{"topic":"projects/demo/topics/nope"}`, 404)
	c.do("PUT", pub+"topics/probes", `{}`, 200)
	c.do("PUT", pub+"subscriptions/push", `{"topic":"projects/demo/topics/probes","deadLetterPolicy":{"deadLetterTopic":"projects/demo/topics/dead"}}`, 404)
	c.do("PUT", pub+"subscriptions/push", `{"topic":"projects/demo/topics/probes","pushConfig":{"pushEndpoint":"https://x/","oidcToken":{"serviceAccountEmail":"a@demo.iam.gserviceaccount.com"}}}`, 400)
	c.do("POST", services, service(`,"env":[{"name":"T","valueFrom":{"secretKeyRef":{"name":"tok","key":"latest"}}}]`), 400)
}

func TestAPIsMustBeEnabledAndTheProjectOurs(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	c.do("PUT", pub+"topics/probes", `{}`, 403)
	op := c.do("POST", "https://serviceusage.googleapis.com/v1/projects/demo/services:batchEnable", `{"serviceIds":["pubsub.googleapis.com"]}`, 200)
	require.Equal(t, true, op["done"])
	c.do("PUT", pub+"topics/probes", `{}`, 200)
	c.do("GET", "https://pubsub.googleapis.com/v1/projects/other/topics/probes", "", 403)
	c.do("POST", "https://serviceusage.googleapis.com/v1/projects/demo/services:batchEnable", `{"serviceIds":["pubsubb.googleapis.com"]}`, 403)
	c.do("GET", "https://nosuchapi.googleapis.com/v1/x", "", 501)
	requests := c.server.Requests()
	require.True(t, requests[len(requests)-1].Unknown)
}

func TestPoliciesAreWrittenAsAWhole(t *testing.T) {
	t.Parallel()
	c := start(t, Options{AllAPIs: true})
	tag := text(c.do("POST", crm+":getIamPolicy", `{}`, 200), "etag")
	set := func(member, role string, want int) {
		t.Helper()
		body, err := json.Marshal(Object{"policy": Object{"etag": tag, "bindings": []any{Object{"role": role, "members": []any{member}}}}})
		require.NoError(t, err)
		c.do("POST", crm+":setIamPolicy", string(body), want)
	}
	set("serviceAccount:lease1@demo.iam.gserviceaccount.com", "roles/datastore.user", 400) // no such account yet
	c.do("POST", accounts, `{"accountId":"lease1"}`, 200)
	set("serviceAccount:lease1@demo.iam.gserviceaccount.com", "roles/datastore.usr", 400)
	set("lease1@demo.iam.gserviceaccount.com", "roles/datastore.user", 400)
	set("serviceAccount:lease1@demo.iam.gserviceaccount.com", "roles/datastore.user", 200)
	set("serviceAccount:lease1@demo.iam.gserviceaccount.com", "roles/datastore.user", 409) // another write came first
}

func service(extra string) string {
	return `{"apiVersion":"serving.knative.dev/v1","kind":"Service","metadata":{"name":"x-lease","namespace":"demo"},"spec":{"template":{"spec":{"containers":[{"image":"elsewhere/y"` + extra + `}]}}}}`
}

func TestAServiceGetsARevisionPerChange(t *testing.T) {
	t.Parallel()
	c := start(t, Options{AllAPIs: true})
	c.do("PUT", services+"/x-lease", service(""), 404)
	o := c.do("POST", services, service(""), 200)
	first := text(o, "status", "latestReadyRevisionName")
	assert.Equal(t, "https://x-lease-123456789012.us-central1.run.app", text(o, "status", "url"))
	c.do("POST", services, service(""), 409)
	o = c.do("PUT", services+"/x-lease", service(""), 200)
	assert.Equal(t, first, text(o, "status", "latestReadyRevisionName"))
	o = c.do("PUT", services+"/x-lease", service(`,"env":[{"name":"A","value":"b"}]`), 200)
	assert.NotEqual(t, first, text(o, "status", "latestReadyRevisionName"))
	c.do("PUT", services+"/x-lease", service(`,"env":[{"name":"PORT","value":"1"}]`), 400)
}

func TestFunctionsAnswerOnlyThoseWhoMayCall(t *testing.T) {
	t.Parallel()
	c := start(t, Options{AllAPIs: true})
	c.do("POST", services, service(""), 200)
	c.do("GET", "https://x-lease-123456789012.us-central1.run.app/v1/status", "", 200)
	c.do("GET", "https://candidate---x-lease-123456789012.us-central1.run.app/v1/status", "", 404)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://x-lease-123456789012.us-central1.run.app/v1/status", nil)
	require.NoError(t, err)
	resp, err := c.http.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 403, resp.StatusCode)
}

func TestSchedulesAreChecked(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string]bool{"* * * * *": true, "*/5 0-6 1,15 jan mon-fri": true, "0 9 * * 7": true,
		"* * * *": false, "60 * * * *": false, "* * 0 * *": false, "*/0 * * * *": false, "x * * * *": false, "": false} {
		assert.Equal(t, want, validSchedule(schedule), schedule)
	}
	c := start(t, Options{AllAPIs: true})
	c.do("POST", jobs, `{"name":"projects/demo/locations/us-central1/jobs/j","schedule":"* * * * *","httpTarget":{"uri":"https://x/"}}`, 200)
	c.do("POST", strings.Replace(jobs, "us-central1", "us-centrall1", 1), `{}`, 400)
}

func TestSecretsAndTokensAreNotRecorded(t *testing.T) {
	t.Parallel()
	c := start(t, Options{AllAPIs: true})
	c.do("POST", "https://secretmanager.googleapis.com/v1/projects/demo/secrets?secretId=tok", `{"replication":{"automatic":{}}}`, 200)
	c.do("POST", "https://secretmanager.googleapis.com/v1/projects/demo/secrets/tok:addVersion", `{"payload":{"data":"aHVzaA=="}}`, 200)
	record, err := json.Marshal(c.server.Requests())
	require.NoError(t, err)
	state, err := json.Marshal(c.server.State())
	require.NoError(t, err)
	for _, secret := range []string{"aHVzaA", "made-up"} {
		assert.NotContains(t, string(record)+string(state), secret)
	}
	assert.Equal(t, "gcloud.test", c.server.Requests()[0].Command)
	assert.Equal(t, "Bearer", c.server.Requests()[0].Auth)
}

func TestFaultsAndOperations(t *testing.T) {
	t.Parallel()
	c := start(t, Options{AllAPIs: true, LROPolls: 2})
	c.server.Fail(`^PUT pubsub`, 503, 1)
	c.do("PUT", pub+"topics/probes", `{}`, 503)
	c.do("PUT", pub+"topics/probes", `{}`, 200)
	registry := "https://artifactregistry.googleapis.com/v1/"
	op := c.do("POST", registry+"projects/demo/locations/us-central1/repositories?repositoryId=fleet", `{"format":"DOCKER"}`, 200)
	for polls := 0; op["done"] != true; polls++ {
		require.Less(t, polls, 3)
		op = c.do("GET", registry+text(op, "name"), "", 200)
	}
}

func TestRequestsAreHeldToTheAPIsOwnDescription(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	require.NoError(t, err)
	c := start(t, Options{AllAPIs: true, Discovery: strings.TrimSpace(string(out))})
	c.do("PUT", pub+"topics/probes", `{"lables":{}}`, 400)
	c.do("PUT", pub+"topics/probes", `{"labels":{"a":1}}`, 400)
	c.do("PUT", pub+"topics/probes?updatMask=x", `{}`, 400)
	c.do("PUT", pub+"topics/probes/nope", `{}`, 404)
	for _, r := range c.server.Requests() {
		assert.True(t, r.Unknown, r.Path)
	}
	c.do("PUT", pub+"topics/probes", `{"labels":{"a":"1"}}`, 200)

	// The files that a deploy sends as they are.
	policies, err := filepath.Glob("../../monitoring/policies/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, policies)
	for _, file := range policies {
		c.do("POST", "https://monitoring.googleapis.com/v3/projects/demo/alertPolicies", read(t, file), 200)
	}
	c.do("POST", "https://monitoring.googleapis.com/v1/projects/demo/dashboards", read(t, "../../monitoring/dashboard.json"), 200)
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}
