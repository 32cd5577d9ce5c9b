package gce

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAListHasPagesOverManyZones(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Zones: []string{"us-east1-b", "us-east1-c", "us-west1-a"}})
	for i := range 5 {
		z := []string{"us-east1-b", "us-east1-c"}[i%2]
		w.must("POST", "zones/"+z+"/instances", machine(fmt.Sprintf("vm-%d", i), func(b object) { b["machineType"] = "zones/" + z + "/machineTypes/e2-micro" }))
	}
	seen, pages := map[string]bool{}, 0
	for token := ""; pages == 0 || token != ""; pages++ {
		out := w.must("GET", "aggregated/instances?maxResults=2&pageToken="+token, nil)
		for scope, list := range out["items"].(object) {
			vms, _ := list.(object)["instances"].([]any)
			for _, vm := range vms {
				assert.Contains(t, vm.(object)["zone"], scope)
				seen[vm.(object)["name"].(string)] = true
			}
			if len(vms) == 0 {
				assert.Equal(t, "NO_RESULTS_ON_PAGE", list.(object)["warning"].(object)["code"])
			}
		}
		token, _ = out["nextPageToken"].(string)
	}
	assert.Equal(t, 3, pages)
	assert.Len(t, seen, 5)
	for _, bad := range []string{"maxResults=501", "maxResults=x", "pageToken=x", "pageToken=eA=="} {
		code, _ := w.call("GET", "aggregated/instances?"+bad, nil)
		assert.Equal(t, http.StatusBadRequest, code, bad)
	}
	ops := w.must("GET", "zones/us-east1-b/operations?maxResults=2", nil)
	assert.Len(t, ops["items"], 2)
	ops = w.must("GET", "zones/us-east1-b/operations?maxResults=2&pageToken="+ops["nextPageToken"].(string), nil)
	assert.Len(t, ops["items"], 1)
	code, _ := w.call("GET", "zones/us-east1-b/operations?maxResults=x", nil)
	assert.Equal(t, http.StatusBadRequest, code)
}

func TestFilters(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	w.insert("vm-a", nil)
	w.insert("vm-b", func(b object) { b["labels"] = object{"team": "other", "a_b-c": ""} })
	rows := map[string][]string{
		``:                                  {"vm-a", "vm-b"},
		`name="vm-a"`:                       {"vm-a"},
		`name = vm-a`:                       {"vm-a"},
		`name!="vm-a"`:                      {"vm-b"},
		`labels.team="crawl"`:               {"vm-a"},
		`labels.a_b-c:*`:                    {"vm-b"},
		`labels.team:*`:                     {"vm-a", "vm-b"},
		`labels.team="crawl" AND name=vm-b`: {},
		`(labels.team="other") (name=vm-b)`: {"vm-b"},
		`(name="vm-a") AND (status="PROVISIONING")`: {"vm-a"},
		`name="a AND (b)"`:                          {},
	}
	for text, want := range rows {
		out := w.must("GET", "aggregated/instances?filter="+url.QueryEscape(text), nil)
		got := []string{}
		vms, _ := out["items"].(object)["zones/"+zone].(object)["instances"].([]any)
		for _, vm := range vms {
			got = append(got, vm.(object)["name"].(string))
		}
		assert.Equal(t, want, got, text)
	}
	for _, bad := range []string{`name`, `colour=red`, `name:vm-a`, `name="a" OR name="b"`, `name eq vm`} {
		code, out := w.call("GET", "aggregated/instances?filter="+url.QueryEscape(bad), nil)
		assert.Equal(t, http.StatusBadRequest, code, bad)
		assert.Equal(t, "invalid", reasonOf(out), bad)
	}
}

func TestASilentZoneIsLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	w.insert("vm", nil)
	w.SetUnreachable(zone, true)
	out := w.must("GET", "aggregated/instances", nil)
	assert.Equal(t, []any{"zones/" + zone}, out["unreachables"])
	assert.Equal(t, "UNREACHABLE", out["items"].(object)["zones/"+zone].(object)["warning"].(object)["code"])
	assert.Nil(t, out["items"].(object)["zones/"+zone].(object)["instances"])
	code, _ := w.call("GET", "zones/"+zone+"/instances/vm", nil)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	w.Heal()
	assert.Nil(t, w.must("GET", "aggregated/instances", nil)["unreachables"])
}
