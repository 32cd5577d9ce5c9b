package gce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	project = "crawl-project"
	zone    = "us-east1-b"
)

// world is a started server with a clock that tests move.
type world struct {
	*Server
	t   *testing.T
	mu  sync.Mutex
	now time.Time
}

func start(t *testing.T, opts Options) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 5, 12, 0, 10, 0, time.UTC)}
	opts.Now = func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.now
	}
	w.Server = New(opts)
	require.NoError(t, w.Start("127.0.0.1:0"))
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// object is any JSON object.
type object = map[string]any

// call makes a request below the project and returns status and body.
func (w *world) call(method, path string, body any) (int, object) {
	w.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		require.NoError(w.t, err)
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.URL()+"/compute/v1/projects/"+project+"/"+path, reader)
	require.NoError(w.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	var out object
	require.NoError(w.t, json.NewDecoder(resp.Body).Decode(&out))
	return resp.StatusCode, out
}

// must is call where anything but success is a failure.
func (w *world) must(method, path string, body any) object {
	w.t.Helper()
	status, out := w.call(method, path, body)
	require.Equal(w.t, http.StatusOK, status, "%v", out)
	return out
}

func (w *world) insert(name string, change func(object)) object {
	w.t.Helper()
	return w.must("POST", "zones/"+zone+"/instances", machine(name, change))
}

func (w *world) status(name string) string {
	w.t.Helper()
	code, out := w.call("GET", "zones/"+zone+"/instances/"+name, nil)
	if code == http.StatusNotFound {
		return "absent"
	}
	return out["status"].(string)
}

// machine is an instance that the API takes.
func machine(name string, change func(object)) object {
	b := object{
		"name": name, "machineType": "zones/" + zone + "/machineTypes/e2-micro",
		"labels":            object{"team": "crawl"},
		"disks":             []any{object{"boot": true, "autoDelete": true, "initializeParams": object{"sourceImage": "projects/p/global/images/family/i", "diskSizeGb": "10"}}},
		"networkInterfaces": []any{object{"network": "global/networks/default", "accessConfigs": []any{object{"type": "ONE_TO_ONE_NAT"}}}},
		"metadata":          object{"items": []any{object{"key": "user-data", "value": "#cloud-config"}}},
		"scheduling":        object{"provisioningModel": "SPOT", "automaticRestart": false, "instanceTerminationAction": "DELETE"},
	}
	if change != nil {
		change(b)
	}
	return b
}

func reasonOf(out object) string {
	e, _ := out["error"].(object)
	if e == nil {
		return ""
	}
	return e["errors"].([]any)[0].(object)["reason"].(string)
}

func TestOldOperationsCanBeForgotten(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	op := w.insert("vm", nil)
	w.ForgetOperations()
	code, _ := w.call("GET", "zones/"+zone+"/operations/"+op["name"].(string), nil)
	assert.Equal(t, http.StatusNotFound, code)
}

func TestATakenPortIsSaid(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	err := New(Options{}).Start(strings.TrimPrefix(w.URL(), "http://"))
	assert.ErrorContains(t, err, "compute emulator")
	assert.NoError(t, New(Options{}).Close(), "one that never started can be closed")
}

func TestTheDefaultsAreSensible(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	assert.NotEmpty(t, s.opts.Zones)
	assert.WithinDuration(t, time.Now(), s.opts.Now(), time.Minute)
	assert.Equal(t, 500, s.opts.PageSize)
	assert.Positive(t, s.opts.Provision)
}

func TestALongLifeNeedsNoMoreMemory(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	for i := range maxCalls + 10 {
		s.begin(Call{Method: Get, Name: fmt.Sprint(i)})
	}
	calls := s.Calls()
	assert.Less(t, len(calls), maxCalls)
	assert.Equal(t, fmt.Sprint(maxCalls+9), calls[len(calls)-1].Name)
}
