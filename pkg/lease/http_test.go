package lease

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestBadRequestsNameTheField(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	for _, row := range []struct{ path, body, field string }{
		{"/v1/leases", `{"ttlSeconds":-1}`, "ttlSeconds"},
		{"/v1/leases", `{"ttlSeconds":0}`, "ttlSeconds"},
		{"/v1/leases", `{"ttlSeconds":9}`, "ttlSeconds"},
		{"/v1/leases", `{"ttlSeconds":3601}`, "ttlSeconds"},
		{"/v1/leases", `{"ttlSeconds":1e400}`, "ttlSeconds"},
		{"/v1/leases", `{"ttlSeconds":10.5}`, "ttlSeconds"},
		{"/v1/leases", `{"ttlSeconds":"300"}`, "ttlSeconds"},
		{"/v1/leases", `{"ttlSeconds":NaN}`, "ttlSeconds"},
		{"/v1/leases", `{"waitSeconds":31}`, "waitSeconds"},
		{"/v1/leases", `{"ttl":1}`, "ttl"},
		{"/v1/leases", `{"holder":1}`, "holder"},
		{"/v1/leases", `{"holder":"` + strings.Repeat("x", 201) + `"}`, "holder"},
		{"/v1/leases", `{"requestId":"a b"}`, "requestId"},
		{"/v1/leases", `{"labels":["a"]}`, "labels"},
		{"/v1/leases", `{"labels":{"a":1}}`, "labels"},
		{"/v1/leases", `{"labels":{"a":null}}`, "labels"},
		{"/v1/leases", `{"labels":{"a":"1","a":"2"}}`, "labels"},
		{"/v1/leases", `{"labels":{"a":"1"},"labels":{"a":"2"}}`, "labels"},
		{"/v1/leases", `{"labels":` + manyLabels() + `}`, "labels"},
		{"/v1/leases", `{"exclude":"a"}`, "exclude"},
		{"/v1/leases", `{"exclude":[1]}`, "exclude"},
		{"/v1/leases", `{"stickyKey":{}}`, "stickyKey"},
		{"/v1/leases", `{"TTLSeconds":60}`, "TTLSeconds"},
		{"/v1/leases", `{"z":1,"y":1}`, "y"},
		{"/v1/leases", `{"holder":"x"}]`, "body"},
		{"/v1/leases", `{"holder":"x"`, "body"},
		{"/v1/leases", `null`, "body"},
		{"/v1/leases", `{"target":"https://x/"}`, "target"},
		{"/v1/leases", `{"provider":"A B"}`, "provider"},
		{"/v1/leases", `{"holder":"a","holder":"b"}`, "holder"},
		{"/v1/leases", `[]`, "body"},
		{"/v1/leases", `{`, "body"},
		{"/v1/leases", `{} {}`, "body"},
		{"/v1/leases", "{\"holder\":\"\xff\"}", "body"},
		{"/v1/leases", `{"holder":"` + strings.Repeat("x", maxBody) + `"}`, "body"},
		{"/v1/leases:batch", `{}`, "count"},
		{"/v1/leases:batch", `{"count":51}`, "count"},
		{"/v1/leases/p-000.0.abcdefghijklmnopqrst:renew", `{"ttlSeconds":1}`, "ttlSeconds"},
		{"/v1/leases/p-000.0.abcdefghijklmnopqrst:release", `{"outcome":"great"}`, "outcome"},
		{"/v1/leases/p-000.0.abcdefghijklmnopqrst:report", `{}`, "outcome"},
		{"/v1/leases/p-000.0.abcdefghijklmnopqrst:report", `{"outcome":"ok","x":1}`, "x"},
	} {
		status, answer, _ := r.call(http.MethodPost, row.path, row.body)
		require.Equal(t, http.StatusBadRequest, status, row.body[:min(80, len(row.body))])
		require.Equal(t, string(InvalidArgument), reasonIn(answer))
		details := answer["error"].(map[string]any)["details"].([]any)[0].(map[string]any)
		require.Equal(t, row.field, details["metadata"].(map[string]any)["field"], row.body[:min(80, len(row.body))])
	}
	require.Zero(t, r.live())
	status, _, _ := r.call(http.MethodGet, "/v1/proxies?colour=red", "")
	require.Equal(t, http.StatusBadRequest, status)
	status, _, _ = r.call(http.MethodGet, "/v1/proxies?label=red", "")
	require.Equal(t, http.StatusBadRequest, status)
	status, answer, _ := r.call(http.MethodGet, "/v1/proxies?state=ready", "")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, fmt.Sprint(answer), "Ready, Unhealthy, Pending")
}

func manyLabels() string {
	var pairs []string
	for i := range maxList + 1 {
		pairs = append(pairs, fmt.Sprintf("%q:%q", fmt.Sprint(i), ""))
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func TestATargetIsAHostHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 50))
	for given, want := range map[string]any{
		"Shop.Example": "shop.example", "shop.example.": "shop.example", "shop.example:8443": "shop.example", "192.0.2.7:80": "192.0.2.7",
		"[2001:db8::1]:443": "2001:db8::1", "2001:DB8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "": nil,
	} {
		_, lease, _ := r.call(http.MethodPost, "/v1/leases", fmt.Sprintf(`{"target":%q}`, given))
		require.Equal(t, want, lease["target"], given)
	}
}

func TestDiscoveryTellsLiveLeasesOfEachProxyWhoeverGrantedThem(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(3), "b": ready(3), "c": ready(0)})
	other := r.instance(r.store)
	for range 2 {
		_, err := other.Acquire(t.Context(), Request{TTL: time.Minute, Filter: Filter{Exclude: []string{"b"}}})
		require.NoError(t, err)
	}
	live := func() map[string]any {
		_, answer, _ := r.call(http.MethodGet, "/v1/proxies", "")
		out := map[string]any{}
		for _, p := range answer["proxies"].([]any) {
			out[p.(map[string]any)["name"].(string)] = p.(map[string]any)["liveLeases"]
		}
		return out
	}
	require.Equal(t, map[string]any{"a": 2.0, "b": 0.0, "c": 0.0}, live())
	r.clock.Advance(2 * time.Minute)
	require.Equal(t, map[string]any{"a": 0.0, "b": 0.0, "c": 0.0}, live(), "what expired is not live")
}

func TestDiscoveryOfAHugeFleetReadsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(6, 1000))
	for range mostSlots + 1 {
		r.mustAcquire(Request{})
	}
	list, err := r.Proxies(t.Context(), Filter{}, "")
	require.NoError(t, err)
	require.Len(t, list, 6)
	require.Nil(t, list[0].LiveLeases)
	one, err := r.Proxy(t.Context(), "p-000")
	require.NoError(t, err)
	require.Positive(t, *one.LiveLeases)
}

func TestNullAndEmptyBodiesMeanTheDefaults(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	for _, body := range []string{"", "{}", " \n", `{"holder":null,"ttlSeconds":null}`} {
		status, answer, _ := r.call(http.MethodPost, "/v1/leases", body)
		require.Equal(t, http.StatusCreated, status, answer)
	}
}

func TestALifeOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]fleet.Entry{"a": ready(2, "pool=news"), "b": ready(0)})
	status, lease, header := r.call(http.MethodPost, "/v1/leases", `{"labels":{"pool":"news"},"holder":"h","target":"Example.com"}`)
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, "no-store", header.Get("Cache-Control"))
	path := "/v1/leases/" + lease["id"].(string)
	status, got, _ := r.call(http.MethodGet, path, "")
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, got, "endpoint", "no credentials in a look")
	status, _, _ = r.call(http.MethodPost, path+":renew", `{"ttlSeconds":60}`)
	require.Equal(t, http.StatusOK, status)
	status, _, _ = r.call(http.MethodPost, path+":report", `{"outcome":"ok"}`)
	require.Equal(t, http.StatusOK, status)
	status, proxy, _ := r.call(http.MethodGet, "/v1/proxies/a", "")
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 1, proxy["liveLeases"])
	status, list, _ := r.call(http.MethodGet, "/v1/proxies?label=pool=news&state=Ready", "")
	require.Equal(t, http.StatusOK, status)
	require.Len(t, list["proxies"], 1)
	status, st, _ := r.call(http.MethodGet, "/v1/status", "")
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 1, st["liveLeases"])
	require.EqualValues(t, 1, st["freeSlots"])
	status, _, _ = r.call(http.MethodDelete, path, "")
	require.Equal(t, http.StatusOK, status)
	status, _, _ = r.call(http.MethodPost, path+":release", `{"outcome":"ok"}`)
	require.Equal(t, http.StatusOK, status)
	status, gone, _ := r.call(http.MethodPost, path+":renew", "")
	require.Equal(t, http.StatusGone, status)
	require.Equal(t, string(LeaseExpired), reasonIn(gone))
}

func TestRefusalsSayWhenToComeBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	status, answer, header := r.call(http.MethodPost, "/v1/leases", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, string(NoProxies), reasonIn(answer))
	require.Equal(t, "30", header.Get("Retry-After"))
}

func TestPathsAndMethodsThatAreNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	for _, row := range []struct {
		method, path string
		status       int
		reason       Reason
	}{
		{http.MethodGet, "/v1/leases", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodPut, "/v1/leases/x", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodPost, "/v1/status", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodPost, "/", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodGet, "/v1/leases/p-000.0.abcdefghijklmnopqrst:renew", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodDelete, "/v1/leases/p-000.0.abcdefghijklmnopqrst:release", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodPost, "/v1/leases/p-000.0.abcdefghijklmnopqrst", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodOptions, "/v1/leases", http.StatusMethodNotAllowed, MethodNotAllowed},
		{http.MethodGet, "/v2", http.StatusNotFound, NotFound},
		{http.MethodPost, "//v1/leases", http.StatusNotFound, NotFound},
		{http.MethodPost, "/v1/./leases", http.StatusNotFound, NotFound},
		{http.MethodGet, "/v1/leases/", http.StatusNotFound, NotFound},
		{http.MethodGet, "/v1/leases/a/b", http.StatusNotFound, NotFound},
		{http.MethodPost, "/v1/leases/p-000.0.abcdefghijklmnopqrst:sell", http.StatusNotFound, NotFound},
		{http.MethodGet, "/v1/leases/nonsense", http.StatusNotFound, LeaseNotFound},
		{http.MethodGet, "/v1/proxies/none", http.StatusNotFound, ProxyNotFound},
	} {
		status, answer, header := r.call(row.method, row.path, "")
		require.Equal(t, row.status, status, row.path)
		require.Equal(t, string(row.reason), reasonIn(answer), row.path)
		require.Equal(t, row.status == http.StatusMethodNotAllowed, header.Get("Allow") != "")
	}
	for _, path := range []string{"/healthz", "/v1/status", "/v1/proxies", "/", "/openapi.json"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			status, _, _ := r.call(method, path, "")
			require.Equal(t, http.StatusOK, status, "%s %s", method, path)
		}
	}
}

func token(claims string) string {
	return "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".SIGNATURE_REMOVED_BY_GOOGLE"
}

func TestIAMTakesTheHolderFromTheTokenThatCloudRunChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 5))
	r.server.Auth = IAM{}
	h := r.server.Handler()
	status, answer, _ := do(t, h, http.MethodPost, "/v1/leases", "", "Authorization", "Bearer "+token(`{"email":"crawler@example.com"}`))
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, "crawler@example.com", answer["holder"])
	_, answer, _ = do(t, h, http.MethodPost, "/v1/leases", `{"holder":"me"}`, "X-Serverless-Authorization", "bearer "+token(`{"sub":"7"}`))
	require.Equal(t, "me", answer["holder"], "a default only")
	for _, bad := range []string{"", "Basic x", "Bearer nonsense", "Bearer a.%.c", "Bearer a." + base64.RawURLEncoding.EncodeToString([]byte("x")) + ".c"} {
		for _, path := range []string{"/v1/status", "/v1/proxies", "/", "/v1/leases/x"} {
			status, answer, header := do(t, h, http.MethodGet, path, "", "Authorization", bad)
			require.Equal(t, http.StatusUnauthorized, status)
			require.Equal(t, string(Unauthenticated), reasonIn(answer))
			require.Equal(t, "Bearer", header.Get("WWW-Authenticate"))
		}
	}
	status, _, _ = do(t, h, http.MethodGet, "/healthz", "")
	require.Equal(t, http.StatusOK, status, "probes of the platform come without a token")
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("k3y"))
	r := newRig(t, fleetOf(1, 5))
	r.vault["keys/"] = "# crawlers\n\nanna: " + hex.EncodeToString(sum[:]) + "\n"
	r.server.Auth = APIKeys{Secrets: r.vault, Secret: "keys"}
	h := r.server.Handler()
	status, answer, _ := do(t, h, http.MethodPost, "/v1/leases", "", "Authorization", "Bearer k3y")
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, "anna", answer["holder"])
	for _, bad := range []string{"", "Bearer ", "Bearer wrong", "k3y", "Bearer " + hex.EncodeToString(sum[:])} {
		status, _, _ := do(t, h, http.MethodGet, "/v1/status", "", "Authorization", bad)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	delete(r.vault, "keys/")
	status, _, _ = do(t, h, http.MethodGet, "/v1/status", "", "Authorization", "Bearer k3y")
	require.Equal(t, http.StatusServiceUnavailable, status)
	for _, list := range []string{"", "anna", "anna: 12", ": " + hex.EncodeToString(sum[:]), "anna: hunter2"} {
		_, err := ParseAPIKeys(list)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestNoSecretLeavesButInAcquireAndRenew(t *testing.T) {
	t.Parallel()
	e := ready(5)
	e.Credentials = &fleet.SecretRef{Name: "auth"}
	r := newRig(t, map[string]fleet.Entry{"a": e})
	r.vault["auth/"] = "crawler:pl4nted"
	var log bytes.Buffer
	r.Log = slog.New(slog.NewJSONHandler(&log, nil))
	status, lease, _ := r.call(http.MethodPost, "/v1/leases", "")
	require.Equal(t, http.StatusCreated, status)
	require.Contains(t, fmt.Sprint(lease), "pl4nted")
	path := "/v1/leases/" + lease["id"].(string)
	for _, get := range []string{path, "/v1/proxies", "/v1/proxies/a", "/v1/status", "/openapi.json", "/"} {
		_, answer, _ := r.call(http.MethodGet, get, "")
		require.NotContains(t, fmt.Sprint(answer), "pl4nted", get)
	}
	_, _, _ = r.call(http.MethodPost, path+":renew", "")
	_, _, _ = r.call(http.MethodPost, path+":release", "")
	require.NotContains(t, log.String(), "pl4nted")
	require.NotContains(t, log.String(), lease["id"], "who has the id has the lease")
	require.Equal(t, 7, strings.Count(log.String(), "\n"), "one line per lease call: %s", log.String())
	r.vault["auth/"] = "crawler:rot4ted"
	_, lease, _ = r.call(http.MethodPost, "/v1/leases", "")
	require.Contains(t, fmt.Sprint(lease), "rot4ted")
}

// document is as much of the OpenAPI document as the tests look at.
type document struct {
	Paths map[string]map[string]struct {
		OperationID string         `json:"operationId"`
		Responses   map[string]any `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties           map[string]any `json:"properties"`
			Required             []string       `json:"required"`
			AdditionalProperties *bool          `json:"additionalProperties"`
		} `json:"schemas"`
	} `json:"components"`
}

func openAPIDocument(t *testing.T) document {
	t.Helper()
	var d document
	require.NoError(t, json.Unmarshal(openAPI, &d))
	return d
}

// TestEveryDocumentedAnswerIsProvokedAndEveryAnswerDocumented walks all operations through all their
// answers.
func TestEveryDocumentedAnswerIsProvokedAndEveryAnswerDocumented(t *testing.T) {
	t.Parallel()
	d := openAPIDocument(t)
	seen := map[string]map[int]bool{}
	note := func(method, path string, status int) {
		t.Helper()
		op, ok := d.Paths[path][strings.ToLower(method)]
		require.True(t, ok, "%s %s is not documented", method, path)
		require.Contains(t, op.Responses, fmt.Sprint(status), "%s %s", method, path)
		key := strings.ToLower(method) + " " + path
		if seen[key] == nil {
			seen[key] = map[int]bool{}
		}
		seen[key][status] = true
	}
	for _, play := range []func(*testing.T, func(string, string, int)){playGood, playBad, playUnauthenticated, playOutage} {
		play(t, note)
	}
	for path, ops := range d.Paths {
		for method, op := range ops {
			for status := range op.Responses {
				var n int
				_, err := fmt.Sscan(status, &n)
				require.NoError(t, err)
				require.True(t, seen[method+" "+path][n], "%s %s is documented to answer %d, and no test has it do so", method, path, n)
			}
		}
	}
}

func playGood(t *testing.T, note func(string, string, int)) {
	r := newRig(t, map[string]fleet.Entry{"a": ready(50)})
	call := func(method, path, template, body string) map[string]any {
		status, answer, _ := r.call(method, path, body)
		note(method, template, status)
		return answer
	}
	id := call(http.MethodPost, "/v1/leases", "/v1/leases", `{"requestId":"x"}`)["id"].(string)
	call(http.MethodPost, "/v1/leases", "/v1/leases", `{"requestId":"x","ttlSeconds":60}`)
	call(http.MethodPost, "/v1/leases:batch", "/v1/leases:batch", `{"count":2,"requestId":"y"}`)
	call(http.MethodPost, "/v1/leases:batch", "/v1/leases:batch", `{"count":2,"requestId":"y","ttlSeconds":60}`)
	call(http.MethodGet, "/v1/leases/"+id, "/v1/leases/{id}", "")
	for _, verb := range []string{"renew", "report", "release"} {
		call(http.MethodPost, "/v1/leases/"+id+":"+verb, "/v1/leases/{id}:"+verb, map[string]string{"report": `{"outcome":"ok"}`}[verb])
	}
	call(http.MethodDelete, "/v1/leases/"+id, "/v1/leases/{id}", "")
	call(http.MethodPost, "/v1/leases", "/v1/leases", `{"requestId":"x"}`) // has ended: 410
	call(http.MethodGet, "/v1/leases/"+id, "/v1/leases/{id}", "")
	call(http.MethodPost, "/v1/leases/"+id+":renew", "/v1/leases/{id}:renew", "")
	call(http.MethodPost, "/v1/leases/"+id+":report", "/v1/leases/{id}:report", `{"outcome":"ok"}`)
	b := call(http.MethodPost, "/v1/leases:batch", "/v1/leases:batch", `{"count":1,"requestId":"z"}`)["leases"].([]any)
	require.NoError(t, r.Release(t.Context(), b[0].(map[string]any)["id"].(string), OutcomeOK, ""))
	call(http.MethodPost, "/v1/leases:batch", "/v1/leases:batch", `{"count":1,"requestId":"z"}`)
	for _, path := range []string{"/v1/proxies", "/v1/status", "/healthz", "/openapi.json", "/"} {
		call(http.MethodGet, path, path, "")
	}
	call(http.MethodGet, "/v1/proxies/a", "/v1/proxies/{name}", "")
}

func playBad(t *testing.T, note func(string, string, int)) {
	r := newRig(t, fleetOf(1, 1))
	call := func(method, path, template, body string) {
		status, _, _ := r.call(method, path, body)
		note(method, template, status)
	}
	const id = "p-000.0.abcdefghijklmnopqrst"
	for _, path := range []string{"/v1/leases", "/v1/leases:batch"} {
		call(http.MethodPost, path, path, `{"nonsense":1}`)
	}
	for _, verb := range []string{"renew", "report", "release"} {
		call(http.MethodPost, "/v1/leases/"+id+":"+verb, "/v1/leases/{id}:"+verb, `{"nonsense":1}`)
		call(http.MethodPost, "/v1/leases/x:"+verb, "/v1/leases/{id}:"+verb, map[string]string{"report": `{"outcome":"ok"}`}[verb])
	}
	call(http.MethodDelete, "/v1/leases/"+id, "/v1/leases/{id}", `{"nonsense":1}`)
	call(http.MethodDelete, "/v1/leases/x", "/v1/leases/{id}", "")
	call(http.MethodGet, "/v1/leases/x", "/v1/leases/{id}", "")
	call(http.MethodGet, "/v1/proxies?x=1", "/v1/proxies", "")
	call(http.MethodGet, "/v1/proxies/none", "/v1/proxies/{name}", "")
}

// everyCall is each operation that asks who calls, and needs the store.
var everyCall = []struct{ method, path, template, body string }{
	{http.MethodPost, "/v1/leases", "/v1/leases", ""},
	{http.MethodPost, "/v1/leases:batch", "/v1/leases:batch", `{"count":1}`},
	{http.MethodGet, "/v1/leases/p-000.0.abcdefghijklmnopqrst", "/v1/leases/{id}", ""},
	{http.MethodDelete, "/v1/leases/p-000.0.abcdefghijklmnopqrst", "/v1/leases/{id}", ""},
	{http.MethodPost, "/v1/leases/p-000.0.abcdefghijklmnopqrst:renew", "/v1/leases/{id}:renew", ""},
	{http.MethodPost, "/v1/leases/p-000.0.abcdefghijklmnopqrst:release", "/v1/leases/{id}:release", ""},
	{http.MethodPost, "/v1/leases/p-000.0.abcdefghijklmnopqrst:report", "/v1/leases/{id}:report", `{"outcome":"ok"}`},
	{http.MethodGet, "/v1/proxies", "/v1/proxies", ""},
	{http.MethodGet, "/v1/proxies/p-000", "/v1/proxies/{name}", ""},
	{http.MethodGet, "/v1/status", "/v1/status", ""},
}

func playUnauthenticated(t *testing.T, note func(string, string, int)) {
	r := newRig(t, fleetOf(1, 1))
	r.server.Auth = IAM{}
	h := r.server.Handler()
	for _, c := range everyCall {
		status, _, _ := do(t, h, c.method, c.path, c.body)
		require.Equal(t, http.StatusUnauthorized, status)
		note(c.method, c.template, status)
	}
	status, _, _ := do(t, h, http.MethodGet, "/", "")
	note(http.MethodGet, "/", status)
}

func playOutage(t *testing.T, note func(string, string, int)) {
	r := newRig(t, fleetOf(1, 1))
	s := newSpy(r.store)
	s.fail = errors.New("on fire")
	r.server.Service = r.instance(s)
	h := r.server.Handler()
	for _, c := range everyCall {
		status, answer, header := do(t, h, c.method, c.path, c.body)
		require.Equal(t, http.StatusServiceUnavailable, status, c.template)
		require.NotEmpty(t, header.Get("Retry-After"))
		require.NotContains(t, fmt.Sprint(answer), "fire")
		note(c.method, c.template, status)
	}
}

func TestAnswersHaveTheDocumentedFields(t *testing.T) {
	t.Parallel()
	d := openAPIDocument(t)
	r := newRig(t, map[string]fleet.Entry{"a": ready(2, "pool=news")})
	fits := func(schema string, answer map[string]any) {
		t.Helper()
		s, ok := d.Components.Schemas[schema]
		require.True(t, ok, schema)
		for _, f := range s.Required {
			require.Contains(t, answer, f, schema)
		}
		for f := range answer {
			require.Contains(t, s.Properties, f, schema)
		}
	}
	_, lease, _ := r.call(http.MethodPost, "/v1/leases", `{"holder":"h","target":"t","stickyKey":"s"}`)
	fits("Lease", lease)
	fits("Endpoint", lease["endpoint"].(map[string]any))
	_, batch, _ := r.call(http.MethodPost, "/v1/leases:batch", `{"count":5}`)
	fits("Batch", batch)
	_, proxy, _ := r.call(http.MethodGet, "/v1/proxies/a", "")
	fits("Proxy", proxy)
	_, status, _ := r.call(http.MethodGet, "/v1/status", "")
	fits("Status", status)
	for schema, fields := range map[string]string{"AcquireRequest": acquireFields, "BatchRequest": acquireFields + ", count"} {
		for _, f := range strings.Split(fields, ", ") {
			require.Contains(t, d.Components.Schemas[schema].Properties, f)
		}
		require.Len(t, d.Components.Schemas[schema].Properties, len(strings.Split(fields, ", ")))
	}
	for reason := range meanings() {
		require.Contains(t, string(openAPI), `"`+string(reason)+`"`)
	}
}

func TestClientClocksDoNotMatter(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleetOf(1, 1))
	_, lease, _ := r.call(http.MethodPost, "/v1/leases", "", "Date", "Mon, 01 Jan 2040 00:00:00 GMT")
	require.Equal(t, r.clock.Now().Add(DefaultTTL).Format(time.RFC3339), lease["expireTime"])
}
