package gce

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// filter says whether a resource with these fields is listed.
type filter func(fields map[string]string) bool

// term is one comparison of a filter: FIELD = "VALUE", FIELD != "VALUE" or FIELD:*.
var term = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9._-]*)\s*(=|!=|:)\s*("(?:[^"\\]|\\.)*"|[^\s()"]+)$`)

// filterable are the fields that can be compared; labels besides.
var filterable = map[string]bool{
	"name": true, "status": true, "zone": true, "id": true,
	"operationType": true, "targetLink": true, "targetId": true, "clientOperationId": true,
}

// parseFilter reads terms that are joined by AND, or each put in parentheses. That is less than the
// API's language and all that is needed of it; anything else is an error, as is a field that the
// server cannot compare.
func parseFilter(text string) (filter, error) {
	var all []filter
	for _, part := range splitTerms(text) {
		m := term.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("cannot read %q", part)
		}
		field, op, want := m[1], m[2], strings.Trim(m[3], `"`)
		if !filterable[field] && !strings.HasPrefix(field, "labels.") {
			return nil, fmt.Errorf("unknown field %q", field)
		}
		if op == ":" && want != "*" {
			return nil, fmt.Errorf("only %s:* is known", field)
		}
		all = append(all, func(fields map[string]string) bool {
			have, present := fields[field]
			switch op {
			case ":":
				return present
			case "!=":
				return have != want
			}
			return present && have == want
		})
	}
	return func(fields map[string]string) bool {
		for _, f := range all {
			if !f(fields) {
				return false
			}
		}
		return true
	}, nil
}

// splitTerms cuts at AND and at parentheses, outside quotation marks.
func splitTerms(text string) []string {
	var parts []string
	var part strings.Builder
	quoted := false
	flush := func() {
		for _, p := range andWord.Split(part.String(), -1) {
			if p = strings.TrimSpace(p); p != "" {
				parts = append(parts, p)
			}
		}
		part.Reset()
	}
	for _, r := range text {
		if r == '"' {
			quoted = !quoted
		}
		if !quoted && (r == '(' || r == ')') {
			flush()
			continue
		}
		part.WriteRune(r)
	}
	flush()
	return parts
}

var andWord = regexp.MustCompile(`(?:^|\s+)AND(?:\s+|$)`)

func (vm *instance) fields(now time.Time) map[string]string {
	status, _ := vm.status(now)
	out := map[string]string{"name": vm.key.name, "status": status, "zone": link(vm.key.project, "zones/"+vm.key.zone), "id": fmt.Sprint(vm.id)}
	for name, value := range vm.body.Labels {
		out["labels."+name] = value
	}
	return out
}

func (op *operation) fields(now time.Time) map[string]string {
	b := op.body(now)
	return map[string]string{
		"name": b.Name, "status": b.Status, "zone": b.Zone, "id": b.ID,
		"operationType": b.OperationType, "targetLink": b.TargetLink, "targetId": b.TargetID, "clientOperationId": b.ClientOperationID,
	}
}
