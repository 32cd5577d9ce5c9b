package gce

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestARequestIDIsAnsweredWithItsOperation(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	const id = "?requestId=6fa459ea-ee8a-3ca4-894e-db77e160355e"
	first := w.must("POST", "zones/"+zone+"/instances"+id, machine("vm", nil))
	again := w.must("POST", "zones/"+zone+"/instances"+id, machine("vm", nil))
	assert.Equal(t, first["name"], again["name"])
	assert.Equal(t, "6fa459ea-ee8a-3ca4-894e-db77e160355e", again["clientOperationId"])
	code, out := w.call("POST", "zones/"+zone+"/instances", machine("vm", nil))
	assert.Equal(t, http.StatusConflict, code)
	assert.Equal(t, "alreadyExists", reasonOf(out))

	w.advance(time.Minute)
	const id2 = "?requestId=6fa459ea-ee8a-3ca4-894e-db77e160355f"
	gone := w.must("DELETE", "zones/"+zone+"/instances/vm"+id2, nil)
	w.advance(time.Minute)
	assert.Equal(t, gone["name"], w.must("DELETE", "zones/"+zone+"/instances/vm"+id2, nil)["name"])
	for _, bad := range []string{"7", "00000000-0000-0000-0000-000000000000"} {
		code, _ = w.call("POST", "zones/"+zone+"/instances?requestId="+bad, machine("vm", nil))
		assert.Equal(t, http.StatusBadRequest, code, bad)
		code, _ = w.call("DELETE", "zones/"+zone+"/instances/vm?requestId="+bad, nil)
		assert.Equal(t, http.StatusBadRequest, code, bad)
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	set := func(path string, value any) func(object) {
		return func(b object) {
			at := any(b)
			parts := strings.Split(path, ".")
			for _, part := range parts[:len(parts)-1] {
				if list, ok := at.([]any); ok {
					at = list[0]
				}
				at = at.(object)[part]
			}
			if list, ok := at.([]any); ok {
				at = list[0]
			}
			at.(object)[parts[len(parts)-1]] = value
		}
	}
	labels := object{}
	for i := range 65 {
		labels[fmt.Sprintf("l%d", i)] = "x"
	}
	rows := map[string]func(object){
		"an unknown member":                set("colour", "red"),
		"an unknown member deep inside":    set("disks.initializeParams.colour", "red"),
		"a member of the wrong kind":       set("labels", "red"),
		"a member that only the API sets":  set("status", "RUNNING"),
		"a bad name":                       set("name", "VM"),
		"a name with an end that is no":    set("name", "vm-"),
		"a machine type of another zone":   set("machineType", "zones/us-east1-c/machineTypes/e2-micro"),
		"no machine type":                  set("machineType", ""),
		"a machine type that is not there": set("machineType", "zones/us-east1-b/machineTypes/x9-huge"),
		"no disk":                          set("disks", []any{}),
		"a disk that does not boot":        set("disks.boot", false),
		"a disk without an image":          set("disks.initializeParams", object{}),
		"a disk that exists already":       set("disks.initializeParams", nil),
		"a disk that is too small":         set("disks.initializeParams.diskSizeGb", "5"),
		"a disk type of another zone":      set("disks.initializeParams.diskType", "zones/us-east1-c/diskTypes/pd-ssd"),
		"a disk with a bad label":          set("disks.initializeParams.labels", object{"A": "b"}),
		"no network interface":             set("networkInterfaces", []any{}),
		"an interface without network":     set("networkInterfaces.network", ""),
		"a bad network":                    set("networkInterfaces.network", "default"),
		"a subnetwork of another region":   set("networkInterfaces.subnetwork", "regions/us-west1/subnetworks/s"),
		"a bad access":                     set("networkInterfaces.accessConfigs.type", "TWO_TO_TWO"),
		"IPv6 on a plain interface":        set("networkInterfaces.ipv6AccessConfigs", []any{object{"type": "DIRECT_IPV6", "networkTier": "PREMIUM"}}),
		"a bad label":                      set("labels.Team", "x"),
		"too many labels":                  set("labels", labels),
		"a bad tag":                        set("tags", object{"items": []any{"Web"}}),
		"a metadata value too long":        set("metadata.items.value", strings.Repeat("x", 256<<10+1)),
		"a bad metadata key":               set("metadata.items.key", "a b"),
		"a metadata key twice":             set("metadata.items", []any{object{"key": "a", "value": ""}, object{"key": "a", "value": ""}}),
		"too much metadata":                set("metadata.items", []any{object{"key": "a", "value": strings.Repeat("x", 256<<10)}, object{"key": "b", "value": strings.Repeat("x", 256<<10)}}),
		"an account without scopes":        set("serviceAccounts", []any{object{"email": "a@b"}}),
		"a model that is none":             set("scheduling.provisioningModel", "CHEAP"),
		"spot that restarts":               set("scheduling.automaticRestart", true),
		"spot that migrates":               set("scheduling.onHostMaintenance", "MIGRATE"),
		"an end that is none":              set("scheduling.instanceTerminationAction", "EXPLODE"),
		"an end without a reason":          set("scheduling.provisioningModel", "STANDARD"),
		"too short a life":                 set("scheduling.maxRunDuration", object{"seconds": "29"}),
		"a life without an end":            set("scheduling", object{"maxRunDuration": object{"seconds": "60"}}),
	}
	w := start(t, Options{})
	for promise, change := range rows {
		code, out := w.call("POST", "zones/"+zone+"/instances", machine("vm", change))
		assert.Equal(t, http.StatusBadRequest, code, promise)
		assert.NotEmpty(t, reasonOf(out), promise)
	}
	for _, body := range []string{"", "[]", "{", `{"name": "vm"} {}`} {
		code, _ := w.call("POST", "zones/"+zone+"/instances", body)
		assert.Equal(t, http.StatusBadRequest, code, body)
	}
	assert.Empty(t, w.Names())
	_, out := w.call("POST", "zones/"+zone+"/instances", machine("VM", set("labels.Team", "x")))
	assert.Len(t, out["error"].(object)["errors"], 2, "all that is wrong is said")
	_, out = w.call("POST", "zones/"+zone+"/instances", machine("vm", set("machineType", "zones/us-east1-b/machineTypes/x9-huge")))
	assert.Contains(t, out["error"].(object)["message"], "does not exist in zone 'us-east1-b'")
}

func TestWhatIsNotThereIsSaidAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	code, out := w.call("GET", "zones/us-east1/instances/vm", nil)
	assert.Equal(t, http.StatusBadRequest, code, "an unknown zone is 400, not 404")
	assert.Equal(t, "Invalid value for field 'zone': 'us-east1'. Unknown zone.", out["error"].(object)["message"])
	code, out = w.call("GET", "zones/"+zone+"/instances/vm", nil)
	assert.Equal(t, http.StatusNotFound, code)
	assert.Equal(t, "The resource 'projects/crawl-project/zones/us-east1-b/instances/vm' was not found", out["error"].(object)["message"])
	code, _ = w.call("GET", "zones/"+zone+"/operations/o", nil)
	assert.Equal(t, http.StatusNotFound, code)
	code, _ = w.call("GET", "global/networks/default", nil)
	assert.Equal(t, http.StatusNotFound, code)
	code, _ = w.call("GET", "zones/"+zone+"/instances/vm?colour=red", nil)
	assert.Equal(t, http.StatusBadRequest, code)
}
