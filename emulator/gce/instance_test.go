package gce

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnInstanceBootsInTime(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Provision: time.Second, Boot: 2 * time.Second})
	op := w.insert("vm", nil)
	assert.Equal(t, "PENDING", op["status"])
	assert.Equal(t, "insert", op["operationType"])
	assert.Equal(t, "PROVISIONING", w.status("vm"))
	w.advance(time.Second)
	assert.Equal(t, "STAGING", w.status("vm"))
	w.advance(2 * time.Second)
	assert.Equal(t, "RUNNING", w.status("vm"))

	got := w.must("GET", "zones/"+zone+"/instances/vm", nil)
	nic := got["networkInterfaces"].([]any)[0].(object)
	assert.NotEmpty(t, nic["networkIP"])
	assert.NotEmpty(t, nic["accessConfigs"].([]any)[0].(object)["natIP"])
	assert.Equal(t, "https://www.googleapis.com/compute/v1/projects/crawl-project/zones/us-east1-b", got["zone"])
	assert.Equal(t, "2026-11-05T05:00:10.000-07:00", got["creationTimestamp"])
	assert.Equal(t, "https://www.googleapis.com/compute/v1/projects/crawl-project/zones/us-east1-b/machineTypes/e2-micro", got["machineType"])

	done := w.must("GET", "zones/"+zone+"/operations/"+op["name"].(string), nil)
	assert.Equal(t, "DONE", done["status"])
	assert.Nil(t, done["error"])
}

func TestADeletedInstanceStopsAndGoes(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Stop: 5 * time.Second})
	w.insert("vm", nil)
	w.advance(time.Minute)
	op := w.must("DELETE", "zones/"+zone+"/instances/vm", nil)
	assert.Equal(t, "delete", op["operationType"])
	assert.Equal(t, "STOPPING", w.status("vm"))
	w.advance(5 * time.Second)
	assert.Equal(t, "absent", w.status("vm"))
	code, out := w.call("DELETE", "zones/"+zone+"/instances/vm", nil)
	assert.Equal(t, http.StatusNotFound, code)
	assert.Equal(t, "notFound", reasonOf(out))
}

func TestHowAnInstanceEndsIsItsTerminationAction(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"DELETE": "absent", "STOP": "TERMINATED"} {
		w := start(t, Options{})
		w.insert("vm", func(b object) { b["scheduling"].(object)["instanceTerminationAction"] = action })
		w.advance(time.Minute)
		require.True(t, w.End(project, zone, "vm"))
		assert.Equal(t, "STOPPING", w.status("vm"))
		w.advance(time.Minute)
		assert.Equal(t, want, w.status("vm"))
		if want == "TERMINATED" {
			w.must("DELETE", "zones/"+zone+"/instances/vm", nil)
			w.advance(time.Minute)
			assert.Equal(t, "absent", w.status("vm"))
		}
	}
	assert.False(t, start(t, Options{}).End(project, zone, "nobody"))
}

func TestALongestLifeEnds(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	w.insert("vm", func(b object) { b["scheduling"].(object)["maxRunDuration"] = object{"seconds": "60"} })
	w.advance(time.Minute)
	assert.Equal(t, "RUNNING", w.status("vm"), "it counts from the boot")
	w.advance(time.Minute)
	assert.Equal(t, "absent", w.status("vm"))
}

func TestACallerIsToldWhenInstancesComeAndGo(t *testing.T) {
	t.Parallel()
	var come, gone []Booted
	w := start(t, Options{
		OnRunning: func(b Booted) string { come = append(come, b); return "127.0.0.1" },
		OnGone:    func(b Booted) { gone = append(gone, b) },
	})
	w.insert("vm", nil)
	w.insert("stays", nil)
	assert.Empty(t, come)
	w.advance(time.Minute)
	got := w.must("GET", "zones/"+zone+"/instances/vm", nil)
	assert.Equal(t, "127.0.0.1", got["networkInterfaces"].([]any)[0].(object)["accessConfigs"].([]any)[0].(object)["natIP"])
	w.status("vm")
	require.Len(t, come, 2)
	for _, b := range come {
		assert.Equal(t, map[string]string{"user-data": "#cloud-config"}, b.Metadata)
		assert.Equal(t, "crawl", b.Labels["team"])
	}
	w.must("DELETE", "zones/"+zone+"/instances/vm", nil)
	w.advance(time.Minute)
	w.status("vm")
	require.Len(t, gone, 1)
	assert.Equal(t, "vm", gone[0].Name)
	require.NoError(t, w.Close())
	assert.Len(t, gone, 2, "the end of the server is the end of its instances")
}

func TestAnInstanceCanVanish(t *testing.T) {
	t.Parallel()
	gone := 0
	w := start(t, Options{OnGone: func(Booted) { gone++ }})
	w.insert("vm", nil)
	w.advance(time.Minute)
	require.True(t, w.Vanish(project, zone, "vm"))
	assert.False(t, w.Vanish(project, zone, "vm"))
	assert.Equal(t, "absent", w.status("vm"))
	assert.Equal(t, 1, gone)
}
