package gce

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scopedList is what an aggregated list says of one zone.
type scopedList struct {
	Instances []resource `json:"instances,omitempty"`
	Warning   *warning   `json:"warning,omitempty"`
}

type warning struct {
	Code    string        `json:"code"`
	Message string        `json:"message"`
	Data    []warningData `json:"data,omitempty"`
}

type warningData struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type aggregatedBody struct {
	Kind          string                `json:"kind"`
	ID            string                `json:"id"`
	Items         map[string]scopedList `json:"items"`
	SelfLink      string                `json:"selfLink"`
	NextPageToken string                `json:"nextPageToken,omitempty"`
	Unreachables  []string              `json:"unreachables,omitempty"`
	Warning       *warning              `json:"warning,omitempty"`
}

// aggregatedList answers instances.aggregatedList. A page has at most so many instances, from one zone
// or several; a zone can go on over a page break. Zones without any are on each page, with a warning.
func (s *Server) aggregatedList(r *http.Request, now time.Time) answer {
	keep, from, size, bad := s.listQuery(r)
	if bad != nil {
		return *bad
	}
	project := r.PathValue("project")
	var found []*instance
	for k, vm := range s.instances {
		if k.project == project && !s.unreachable[k.zone] && keep(vm.fields(now)) {
			found = append(found, vm)
		}
	}
	slices.SortFunc(found, func(a, b *instance) int {
		return cmp.Or(strings.Compare(a.key.zone, b.key.zone), strings.Compare(a.key.name, b.key.name))
	})
	body := aggregatedBody{
		Kind: "compute#instanceAggregatedList", ID: "projects/" + project + "/aggregated/instances",
		SelfLink: link(project, "aggregated/instances"), Items: map[string]scopedList{},
	}
	page := found[min(from, len(found)):min(from+size, len(found))]
	if from+size < len(found) {
		body.NextPageToken = pageToken(from + size)
	}
	for _, vm := range page {
		list := body.Items["zones/"+vm.key.zone]
		list.Instances = append(list.Instances, vm.resource(now))
		body.Items["zones/"+vm.key.zone] = list
	}
	s.addWarnings(&body)
	return ok(body)
}

func (s *Server) addWarnings(body *aggregatedBody) {
	for _, zone := range s.opts.Zones {
		scope := "zones/" + zone
		switch {
		case s.unreachable[zone]:
			body.Unreachables = append(body.Unreachables, scope)
			body.Items[scope] = scopedList{Warning: &warning{"UNREACHABLE", "Scope '" + scope + "' is unreachable.", []warningData{{"scope", scope}}}}
			body.Warning = &warning{Code: "UNREACHABLE", Message: "Some scopes were unreachable."}
		case len(body.Items[scope].Instances) == 0:
			body.Items[scope] = scopedList{Warning: &warning{"NO_RESULTS_ON_PAGE", "No results for the scope '" + scope + "'.", []warningData{{"scope", scope}}}}
		}
	}
}

// listOperations answers zoneOperations.list.
func (s *Server) listOperations(r *http.Request, now time.Time) answer {
	keep, from, size, bad := s.listQuery(r)
	if bad != nil {
		return *bad
	}
	project, zone := r.PathValue("project"), r.PathValue("zone")
	var found []operationBody
	for k, op := range s.operations {
		if k.project == project && k.zone == zone && keep(op.fields(now)) {
			found = append(found, op.body(now))
		}
	}
	slices.SortFunc(found, func(a, b operationBody) int { return strings.Compare(a.Name, b.Name) })
	body := map[string]any{"kind": "compute#operationList", "items": found[min(from, len(found)):min(from+size, len(found))]}
	if from+size < len(found) {
		body["nextPageToken"] = pageToken(from + size)
	}
	return ok(body)
}

// listQuery reads the parameters that lists have in common.
func (s *Server) listQuery(r *http.Request) (keep filter, from, size int, bad *answer) {
	q := r.URL.Query()
	keep, err := parseFilter(q.Get("filter"))
	if err != nil {
		a := invalid("filter", q.Get("filter"), "Invalid list filter expression: "+err.Error())
		return nil, 0, 0, &a
	}
	size = s.opts.PageSize
	if text := q.Get("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 500 {
			a := invalid("maxResults", text, "Acceptable values are 0 to 500, inclusive.")
			return nil, 0, 0, &a
		}
		if n > 0 {
			size = min(size, n)
		}
	}
	if token := q.Get("pageToken"); token != "" {
		raw, err := base64.URLEncoding.DecodeString(token)
		if _, scanErr := fmt.Sscanf(string(raw), "from:%d", &from); err != nil || scanErr != nil || from < 0 {
			a := refuse(http.StatusBadRequest, "invalid", "Invalid value for field 'pageToken': '%s'.", token)
			return nil, 0, 0, &a
		}
	}
	return keep, from, size, nil
}

func pageToken(from int) string {
	return base64.URLEncoding.EncodeToString(fmt.Appendf(nil, "from:%d", from))
}
