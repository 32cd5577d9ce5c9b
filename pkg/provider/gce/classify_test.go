package gce

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"

	"crawl.example.com/proxyfleet/pkg/provider"
)

const (
	invalidName   = "Invalid value for field 'resource.name': 'ray-multi_echo-head-480dea0e'. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"
	unknownZone   = "Invalid value for field 'zone': 'us-east1'. Unknown zone."
	noMachine     = "Invalid value for field 'resource.machineType': 'https://www.googleapis.com/compute/v1/projects/p/zones/us-east1-b/machineTypes/n9-micro'. Machine type with name 'n9-micro' does not exist in zone 'us-east1-b'."
	noImage       = "The resource 'projects/debian-cloud/global/images/family/debian-99' was not found"
	noInstance    = "The resource 'projects/crawl-project/zones/us-east1-b/instances/proxy-a' was not found"
	noProject     = "The resource 'projects/crawl-project' was not found"
	loginRequired = "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid authentication credential."
	perMinute     = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute.googleapis.com' for consumer 'project_number:11111111'."
	noPermission  = "Required 'compute.instances.create' permission for 'projects/crawl-project/zones/us-east1-b/instances/proxy-a'"
	notEnabled    = "Compute Engine API has not been used in project 123456789123 before or it is disabled."
	taken         = "The resource 'projects/crawl-project/zones/us-east1-b/instances/proxy-a' already exists"
	stale         = "Labels fingerprint either invalid or resource labels have changed"
	tryAgain      = "Internal error. Please try again or contact Google Support. (Code: '5913B7676272E.AC29531.6D091185')"
	noRoom        = "The zone 'projects/crawl-project/zones/us-east1-b' does not have enough resources available to fulfill the request.  Try a different zone, or try again later."
	orgPolicy     = "Constraint constraints/compute.vmExternalIpAccess violated for project 11111111. Add instance projects/crawl-project/zones/us-east1-b/instances/proxy-a to the constraint to use external IP with it."
)

// toNextMinute is how long the clock of these tests has to go to the next full minute.
const toNextMinute = 50 * time.Second

func TestEveryAnswerHasItsClass(t *testing.T) {
	t.Parallel()
	rows := []struct {
		promise string
		verb    verb
		answer  answer
		class   error
		reason  string
		wait    time.Duration
		zoneOut bool
	}{
		{"an absent instance is not found", verbGet, envelope(404, "notFound", noInstance), provider.ErrNotFound, "notFound", 0, false},
		{"a 404 without a body is not found", verbGet, answer{status: 404, body: ""}, provider.ErrNotFound, "HTTP Not Found", 0, false},
		{"an absent project does not make its instances gone", verbGet, envelope(404, "notFound", noProject), provider.ErrPermanent, "notFound", 0, false},
		{"an absent project does not make a delete succeed", verbDelete, envelope(404, "notFound", noProject), provider.ErrPermanent, "notFound", 0, false},
		{"an absent project does not make a list empty", verbList, envelope(404, "notFound", noProject), provider.ErrPermanent, "notFound", 0, false},
		{"a create that refers to something absent is permanent", verbCreate, envelope(404, "notFound", noImage), provider.ErrPermanent, "notFound", 0, false},
		{"a bad value is permanent", verbCreate, envelope(400, "invalid", invalidName), provider.ErrPermanent, "invalid", 0, false},
		{"an unknown zone is permanent", verbCreate, envelope(400, "invalid", unknownZone), provider.ErrPermanent, "invalid", 0, false},
		{"a missing value is permanent", verbCreate, envelope(400, "required", "Required field 'resource.disks' not specified"), provider.ErrPermanent, "required", 0, false},
		{"a bad value in the new spelling is permanent", verbCreate, envelope(400, "", "bad", errorInfo("INVALID_FIELD_VALUE")), provider.ErrPermanent, "INVALID_FIELD_VALUE", 0, false},
		{"a missing value in the new spelling is permanent", verbCreate, envelope(400, "", "bad", errorInfo("MISSING_REQUIRED_FIELD")), provider.ErrPermanent, "MISSING_REQUIRED_FIELD", 0, false},
		{"a value too large is permanent", verbCreate, envelope(400, "", "bad", errorInfo("FIELD_SIZE_TOO_LARGE")), provider.ErrPermanent, "FIELD_SIZE_TOO_LARGE", 0, false},
		{"a network that is not ready yet is transient", verbCreate, envelope(400, "resourceNotReady", "The resource 'projects/p/global/networks/n' is not ready"), provider.ErrTransient, "resourceNotReady", 0, false},
		{"a machine type that the zone lacks is a stock-out", verbCreate, envelope(400, "invalid", noMachine), provider.ErrQuotaExceeded, "invalid", 0, true},
		{"a missing credential is permanent", verbCreate, envelope(401, "required", loginRequired, errorInfo("CREDENTIALS_MISSING")), provider.ErrPermanent, "CREDENTIALS_MISSING", 0, false},
		{"a refused credential is permanent", verbGet, envelope(401, "authError", "Invalid Credentials"), provider.ErrPermanent, "authError", 0, false},
		{"a spent rate limit waits for the next minute", verbCreate, envelope(403, "rateLimitExceeded", perMinute), provider.ErrTransient, "rateLimitExceeded", toNextMinute, false},
		{"a spent rate limit in both spellings waits", verbList, envelope(403, "rateLimitExceeded", perMinute, errorInfo("RATE_LIMIT_EXCEEDED")), provider.ErrTransient, "RATE_LIMIT_EXCEEDED", toNextMinute, false},
		{"a limit per minute called a quota waits", verbGet, envelope(403, "quotaExceeded", perMinute), provider.ErrTransient, "quotaExceeded", toNextMinute, false},
		{"too many operations at once wait", verbDelete, envelope(403, "rateLimitExceeded", "Quota exceeded", errorInfo("CONCURRENT_OPERATIONS_QUOTA_EXCEEDED")), provider.ErrTransient, "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", toNextMinute, false},
		{"too many operations on one thing wait", verbDelete, envelope(403, "", "Too fast", errorInfo("RESOURCE_OPERATION_RATE_EXCEEDED")), provider.ErrTransient, "RESOURCE_OPERATION_RATE_EXCEEDED", toNextMinute, false},
		{"a quota answered at once is a quota", verbCreate, envelope(403, "quotaExceeded", "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1."), provider.ErrQuotaExceeded, "quotaExceeded", 0, false},
		{"a missing permission is permanent", verbCreate, envelope(403, "forbidden", noPermission), provider.ErrPermanent, "forbidden", 0, false},
		{"a missing permission in the new spelling is permanent", verbList, envelope(403, "", noPermission, errorInfo("IAM_PERMISSION_DENIED")), provider.ErrPermanent, "IAM_PERMISSION_DENIED", 0, false},
		{"an API that is not enabled is permanent", verbList, envelope(403, "accessNotConfigured", notEnabled), provider.ErrPermanent, "accessNotConfigured", 0, false},
		{"an API that is not enabled, in the new spelling, is permanent", verbList, envelope(403, "", notEnabled, errorInfo("SERVICE_DISABLED")), provider.ErrPermanent, "SERVICE_DISABLED", 0, false},
		{"a 403 that says when to come back is transient", verbGet, answer{403, `{"error": {"code": 403, "message": "later", "errors": [{"reason": "forbidden"}]}}`, http.Header{"Retry-After": {"7"}}}, provider.ErrTransient, "forbidden", 7 * time.Second, false},
		{"a 429 that says when to come back is transient", verbGet, answer{429, "", http.Header{"Retry-After": {"120"}}}, provider.ErrTransient, "HTTP Too Many Requests", 2 * time.Minute, false},
		{"a 429 whose details say when to come back is transient", verbGet, envelope(429, "tooManyRequests", "slow down", `{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30s"}`, `"odd"`), provider.ErrTransient, "tooManyRequests", 30 * time.Second, false},
		{"a 429 is transient", verbGet, envelope(429, "tooManyRequests", "slow down"), provider.ErrTransient, "tooManyRequests", 0, false},
		{"an operation in progress is transient", verbDelete, envelope(409, "operationInProgress", "The resource is being created"), provider.ErrTransient, "operationInProgress", 0, false},
		{"a resource in use is transient", verbCreate, envelope(409, "resourceInUseByAnotherResource", "The disk is in use"), provider.ErrTransient, "resourceInUseByAnotherResource", 0, false},
		{"a changed fingerprint is transient", verbDelete, envelope(412, "conditionNotMet", stale), provider.ErrTransient, "conditionNotMet", 0, false},
		{"an organisation policy is permanent", verbCreate, envelope(412, "conditionNotMet", orgPolicy), provider.ErrPermanent, "conditionNotMet", 0, false},
		{"a stock-out answered at once is a stock-out", verbCreate, envelope(503, "", noRoom, errorInfo("ZONE_RESOURCE_POOL_EXHAUSTED")), provider.ErrQuotaExceeded, "ZONE_RESOURCE_POOL_EXHAUSTED", 0, true},
		{"a 500 is transient", verbCreate, envelope(500, "internalError", tryAgain), provider.ErrTransient, "internalError", 0, false},
		{"a 502 page of a front end is transient", verbCreate, answer{status: 502, body: "<html>Bad Gateway</html>"}, provider.ErrTransient, "HTTP Bad Gateway", 0, false},
		{"a 503 is transient", verbCreate, envelope(503, "backendError", tryAgain), provider.ErrTransient, "backendError", 0, false},
		{"a 504 is transient", verbDelete, answer{status: 504}, provider.ErrTransient, "HTTP Gateway Timeout", 0, false},
		{"a code that nobody knows is transient", verbCreate, envelope(418, "teapot", "short and stout"), provider.ErrTransient, "teapot", 0, false},
		{"an answer that is no JSON is transient", verbGet, answer{status: 200, body: "<html>"}, provider.ErrTransient, "", 0, false},
	}
	for _, row := range rows {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			err := put(t, scripted(t, row.answer, `{"status": "DONE"}`), row.verb)
			require.Error(t, err)
			assert.Equal(t, row.class, provider.ClassOf(err), "%v", err)
			assert.ErrorIs(t, err, row.class)
			var e *provider.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, row.reason, e.Reason)
			assert.Equal(t, row.wait, e.RetryAfter)
			out, isOut := provider.StockOutZone(err)
			assert.Equal(t, row.zoneOut, isOut)
			if isOut {
				assert.Equal(t, zone, out)
			}
			if row.answer.status >= 400 && row.verb != verbGet {
				var sdk *googleapi.Error
				require.ErrorAs(t, err, &sdk, "the cloud SDK's own error is found in it")
				assert.Equal(t, row.answer.status, sdk.Code)
			}
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestEveryFailedOperationHasItsClass(t *testing.T) {
	t.Parallel()
	quotaInfo := `{"quotaInfo": {"metricName": "compute.googleapis.com/cpus_all_regions", "limitName": "CPUS-ALL-REGIONS-per-project", "limit": 12, "dimensions": {"global": "global"}}}`
	availability := `{"help": {"links": [{"description": "Troubleshooting documentation", "url": "https://cloud.google.com/compute/docs/resource-error"}]}},
		{"localizedMessage": {"locale": "en-US", "message": "A e2-micro VM instance is currently unavailable in the us-east1-b zone."}},
		{"errorInfo": {"reason": "resource_availability", "domain": "compute.googleapis.com", "metadatas": {"attachment": "", "vmType": "e2-micro", "zone": "us-east1-b", "zonesAvailable": ""}}}`
	rows := []struct {
		promise string
		op      string
		class   error
		reason  string
		zoneOut bool
	}{
		{"a stock-out is one though it comes with 503", operationDone(503, "ZONE_RESOURCE_POOL_EXHAUSTED", noRoom, availability), provider.ErrQuotaExceeded, "ZONE_RESOURCE_POOL_EXHAUSTED", true},
		{"a stock-out with details is one", operationDone(503, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", noRoom, availability), provider.ErrQuotaExceeded, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", true},
		{"an exhausted pool is a stock-out", operationDone(503, "RESOURCE_POOL_EXHAUSTED", noRoom), provider.ErrQuotaExceeded, "RESOURCE_POOL_EXHAUSTED", true},
		{"insufficient capacity is a stock-out", operationDone(503, "INSUFFICIENT_CAPACITY", noRoom), provider.ErrQuotaExceeded, "INSUFFICIENT_CAPACITY", true},
		{"a quota is a quota", operationDone(403, "QUOTA_EXCEEDED", "Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 12.0 globally.", quotaInfo), provider.ErrQuotaExceeded, "QUOTA_EXCEEDED", false},
		{"any other quota is a quota", operationDone(403, "GPU_QUOTA_EXHAUSTED", "no"), provider.ErrQuotaExceeded, "GPU_QUOTA_EXHAUSTED", false},
		{"too many operations at once are no quota", operationDone(403, "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", "no"), provider.ErrTransient, "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", false},
		{"a full subnet is a quota and no stock-out", operationDone(400, "IP_SPACE_EXHAUSTED", "IP space of 'projects/p/regions/r/subnetworks/s' is exhausted."), provider.ErrQuotaExceeded, "IP_SPACE_EXHAUSTED", false},
		{"a full subnet with details is a quota", operationDone(400, "IP_SPACE_EXHAUSTED_WITH_DETAILS", "full"), provider.ErrQuotaExceeded, "IP_SPACE_EXHAUSTED_WITH_DETAILS", false},
		{"something not ready is transient", operationDone(400, "RESOURCE_NOT_READY", "not ready"), provider.ErrTransient, "RESOURCE_NOT_READY", false},
		{"something referred to that is absent is permanent", operationDone(404, "RESOURCE_NOT_FOUND", noImage), provider.ErrPermanent, "RESOURCE_NOT_FOUND", false},
		{"something in use is transient", operationDone(400, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "in use"), provider.ErrTransient, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", false},
		{"a name that is taken is a conflict", operationDone(409, "RESOURCE_ALREADY_EXISTS", taken), provider.ErrPermanent, provider.ReasonNameConflict, false},
		{"an organisation policy is permanent", operationDone(412, "CONDITION_NOT_MET", orgPolicy), provider.ErrPermanent, "CONDITION_NOT_MET", false},
		{"another condition is transient", operationDone(412, "CONDITION_NOT_MET", stale), provider.ErrTransient, "CONDITION_NOT_MET", false},
		{"a missing permission is permanent", operationDone(403, "PERMISSIONS_ERROR", noPermission), provider.ErrPermanent, "PERMISSIONS_ERROR", false},
		{"a bad value is permanent", operationDone(400, "INVALID_USAGE", "bad"), provider.ErrPermanent, "INVALID_USAGE", false},
		{"an unsupported operation is permanent", operationDone(400, "UNSUPPORTED_OPERATION", "bad"), provider.ErrPermanent, "UNSUPPORTED_OPERATION", false},
		{"a reservation that does not fit is permanent", operationDone(400, "RESERVATION_NOT_FOUND", "bad"), provider.ErrPermanent, "RESERVATION_NOT_FOUND", false},
		{"an internal error is transient", operationDone(500, "INTERNAL_ERROR", tryAgain), provider.ErrTransient, "INTERNAL_ERROR", false},
		{"an unavailable service is transient", operationDone(503, "SERVICE_UNAVAILABLE", tryAgain), provider.ErrTransient, "SERVICE_UNAVAILABLE", false},
		{"a failure without an HTTP status is one", operationDone(0, "QUOTA_EXCEEDED", "Quota 'CPUS' exceeded."), provider.ErrQuotaExceeded, "QUOTA_EXCEEDED", false},
		{"a failure with nothing but an HTTP status is one", `{"status": "DONE", "httpErrorStatusCode": 503, "httpErrorMessage": "SERVICE UNAVAILABLE"}`, provider.ErrTransient, "HTTP Service Unavailable", false},
		{"a code that nobody knows is transient", operationDone(0, "TEAPOT", "short"), provider.ErrTransient, "TEAPOT", false},
	}
	for _, row := range rows {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			err := put(t, scripted(t, envelope(404, "notFound", noInstance), row.op), verbLaunch)
			require.Equal(t, provider.ErrNotFound, provider.ClassOf(err), "%v", err)
			e := provider.LaunchFailure(err)
			require.NotNil(t, e)
			assert.Equal(t, row.class, provider.ClassOf(e))
			assert.Equal(t, row.reason, e.Reason)
			out, isOut := provider.StockOutZone(e)
			assert.Equal(t, row.zoneOut, isOut)
			if isOut {
				assert.Equal(t, zone, out)
			}
		})
	}
}

func TestNoAnswerAtAllIsTransient(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			conn.Close()
		}
	}))
	defer server.Close()
	p, err := Open(Settings{Project: project, Endpoint: server.URL}, time.Now)
	require.NoError(t, err)
	for _, v := range []verb{verbCreate, verbGet, verbDelete, verbList} {
		err := put(t, p, v)
		require.Error(t, err, v)
		assert.Equal(t, provider.ErrTransient, provider.ClassOf(err), v)
	}
}

func TestAnErrorNamesOperationObjectClassAndReason(t *testing.T) {
	t.Parallel()
	err := put(t, scripted(t, envelope(403, "forbidden", noPermission), ""), verbCreate)
	assert.EqualError(t, err, "create proxy-a in us-east1-b: permanent (forbidden): "+noPermission)
}

func TestAnErrorNeverRepeatsUserData(t *testing.T) {
	t.Parallel()
	message := "Invalid value for field 'resource.metadata.items[3].value': '#cloud-config\npassword: hunter2'. Too odd."
	err := put(t, scripted(t, envelope(400, "invalid", message), ""), verbCreate)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter2")
	assert.Contains(t, err.Error(), "resource.metadata.items[3].value")

	err = put(t, scripted(t, envelope(404, "notFound", noInstance), operationDone(400, "INVALID_USAGE", message)), verbLaunch)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestAVeryLongMessageIsCut(t *testing.T) {
	t.Parallel()
	err := put(t, scripted(t, envelope(503, "backendError", strings.Repeat("ö", 5000)), ""), verbCreate)
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 700)
	var e *cloudError
	assert.True(t, errors.As(err, &e))
}
