package gce

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAcceptedInsertCanFailLater(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]float64{"ZONE_RESOURCE_POOL_EXHAUSTED": 503, "QUOTA_EXCEEDED": 403, "ODD": 0} {
		w := start(t, Options{})
		w.Inject(Fault{Zone: zone, Name: "vm", Times: 1, Operation: &OperationError{Code: code, After: 7 * time.Second}})
		w.insert("other", nil)
		op := w.insert("vm", nil)
		assert.Equal(t, "absent", w.status("vm"))
		w.advance(6 * time.Second)
		path := "zones/" + zone + "/operations/" + op["name"].(string)
		assert.Equal(t, "RUNNING", w.must("GET", path, nil)["status"])
		w.advance(time.Second)
		got := w.must("GET", path, nil)
		assert.Equal(t, "DONE", got["status"])
		first := got["error"].(object)["errors"].([]any)[0].(object)
		assert.Equal(t, code, first["code"])
		assert.NotContains(t, first["message"], "{")
		if status > 0 {
			assert.Equal(t, status, got["httpErrorStatusCode"])
		}
		assert.Equal(t, "absent", w.status("vm"))
		w.insert("vm", nil)
		assert.Equal(t, "PROVISIONING", w.status("vm"), "it was the one insert")
	}
}

func TestAQuotaOfInstances(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Quota: 1})
	w.insert("vm-a", nil)
	op := w.insert("vm-b", nil)
	w.advance(time.Minute)
	got := w.must("GET", "zones/"+zone+"/operations/"+op["name"].(string), nil)
	assert.Equal(t, "QUOTA_EXCEEDED", got["error"].(object)["errors"].([]any)[0].(object)["code"])
	assert.Equal(t, []string{"vm-a"}, w.Names())
}

func TestARateOfRequests(t *testing.T) {
	t.Parallel()
	w := start(t, Options{PerMinute: 2})
	w.must("GET", "aggregated/instances", nil)
	w.must("GET", "aggregated/instances", nil)
	code, out := w.call("GET", "aggregated/instances", nil)
	assert.Equal(t, http.StatusForbidden, code)
	assert.Equal(t, "rateLimitExceeded", reasonOf(out))
	w.advance(50 * time.Second)
	w.must("GET", "aggregated/instances", nil)
}

func TestFaultsMeetWhatTheyAreMeantFor(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	w.Inject(Fault{Method: Get, Name: "vm", Times: 1, Status: 412, Reason: "conditionNotMet", RetryAfter: 3 * time.Second})
	w.Inject(Fault{Method: Insert, Zone: "us-east1-c", Status: 403, Reason: "forbidden", Message: "no"})
	w.Inject(Fault{Method: Insert, Name: "odd", Status: 503, Reason: "backendError"})
	w.insert("vm", nil)
	code, _ := w.call("GET", "zones/"+zone+"/instances/other", nil)
	assert.Equal(t, http.StatusNotFound, code)
	code, out := w.call("GET", "zones/"+zone+"/instances/vm", nil)
	assert.Equal(t, http.StatusPreconditionFailed, code)
	assert.Equal(t, "Precondition Failed", out["error"].(object)["message"])
	assert.Equal(t, "PROVISIONING", w.status("vm"), "it was for one call")
	code, _ = w.call("POST", "zones/"+zone+"/instances", machine("odd", nil))
	assert.Equal(t, http.StatusServiceUnavailable, code)
	for range 2 {
		code, out = w.call("POST", "zones/us-east1-c/instances", machine("vm-c", nil))
		assert.Equal(t, http.StatusForbidden, code)
		assert.Equal(t, "forbidden", reasonOf(out))
	}
	w.Heal()
	code, _ = w.call("POST", "zones/us-east1-c/instances", machine("vm-c", nil))
	assert.Equal(t, http.StatusBadRequest, code, "the machine type is another zone's")
	assert.Contains(t, w.Calls(), Call{Method: Get, Zone: zone, Name: "other"})
}

func TestAnswersCanBeLateOrLost(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	try := func() error {
		body, err := json.Marshal(machine("vm", nil))
		require.NoError(t, err)
		resp, err := http.Post(w.URL()+"/compute/v1/projects/"+project+"/zones/"+zone+"/instances", "application/json", bytes.NewReader(body))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	w.Inject(Fault{Method: Insert, Times: 1, DropRequest: true})
	assert.Error(t, try())
	assert.Empty(t, w.Names())
	w.Inject(Fault{Method: Insert, Times: 1, LoseAnswer: true})
	assert.Error(t, try())
	assert.Equal(t, []string{"vm"}, w.Names())

	w.Inject(Fault{Method: Get, Times: 1, Delay: 50 * time.Millisecond})
	begun := time.Now()
	assert.Equal(t, "PROVISIONING", w.status("vm"))
	assert.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
}

func TestAnswersCanBeHeldBack(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	w.insert("vm", nil)
	until, answered := make(chan struct{}), make(chan string)
	w.Inject(Fault{Method: Get, Times: 1, Until: until})
	go func() { answered <- w.status("vm") }()
	require.Eventually(t, func() bool { return len(w.Calls()) == 2 }, 10*time.Second, time.Millisecond)
	select {
	case <-answered:
		require.Fail(t, "it did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	close(until)
	assert.Equal(t, "PROVISIONING", <-answered)

	for _, forever := range []Fault{{Method: Get, Times: 1, Until: make(chan struct{})}, {Method: Get, Times: 1, Delay: time.Hour}} {
		w.Inject(forever)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL()+"/compute/v1/projects/p/zones/"+zone+"/instances/vm", nil)
		require.NoError(t, err)
		_, err = http.DefaultClient.Do(req)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
}
