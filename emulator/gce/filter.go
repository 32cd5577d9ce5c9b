package gce

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// filter says whether a resource with these fields is listed.
type filter func(fields map[string]string) bool

// term is one comparison at the beginning of a text: FIELD = "VALUE", FIELD != "VALUE" or FIELD:*.
var term = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9._-]*)\s*(=|!=|:)\s*("(?:[^"\\]|\\.)*"|[^\s()"]+)`)

// between is what may stand between two terms.
var between = regexp.MustCompile(`^([\s()]|AND\b)*`)

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
	for rest := text; ; {
		rest = rest[len(between.FindString(rest)):]
		if rest == "" {
			break
		}
		m := term.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("cannot read %q", rest)
		}
		f, err := compare(m[1], m[2], strings.Trim(m[3], `"`))
		if err != nil {
			return nil, err
		}
		all, rest = append(all, f), rest[len(m[0]):]
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

// compare returns the filter of one term.
func compare(field, op, want string) (filter, error) {
	if !filterable[field] && !strings.HasPrefix(field, "labels.") {
		return nil, fmt.Errorf("unknown field %q", field)
	}
	if op == ":" && want != "*" {
		return nil, fmt.Errorf("only %s:* is known", field)
	}
	return func(fields map[string]string) bool {
		have, present := fields[field]
		switch op {
		case ":":
			return present
		case "!=":
			return have != want
		}
		return present && have == want
	}, nil
}

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
