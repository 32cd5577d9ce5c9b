package standin

import (
	"fmt"
	"slices"
	"strings"
)

// schema is the form of one value in an API's description.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       string             `json:"type"`
	Format     string             `json:"format"`
	Enum       []string           `json:"enum"`
	Properties map[string]*schema `json:"properties"`
	Additional *schema            `json:"additionalProperties"`
	Items      *schema            `json:"items"`
}

// validate returns the place and the text of the first fault in v; no text when there is none.
func (doc *description) validate(s *schema, v any, at string) (place, wrong string) {
	if s.Ref != "" {
		target := doc.Schemas[s.Ref]
		if target == nil {
			return at, "no schema " + s.Ref
		}
		s = target
	}
	if v == nil {
		return "", ""
	}
	switch s.Type {
	case "object":
		return doc.validateObject(s, v, at)
	case "array":
		items, ok := v.([]any)
		if !ok {
			return at, invalid("list", v)
		}
		for i, item := range items {
			if place, wrong := doc.validate(s.Items, item, fmt.Sprintf("%s[%d]", at, i)); wrong != "" {
				return place, wrong
			}
		}
	case "string":
		return at, wrongString(s, v)
	case "integer", "number":
		if _, ok := v.(float64); !ok {
			if digits, ok := v.(string); !ok || match(`-?[0-9.]+`, digits) == nil {
				return at, invalid(s.Type, v)
			}
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return at, invalid("boolean", v)
		}
	}
	return "", ""
}

func (doc *description) validateObject(s *schema, v any, at string) (place, wrong string) {
	o, ok := v.(Object)
	if !ok {
		return at, invalid("object", v)
	}
	for _, k := range sortedKeys(o) {
		property := s.Properties[k]
		if property == nil {
			property = s.Additional
		}
		if property == nil {
			return at, fmt.Sprintf("Unknown name %q: Cannot find field.", k)
		}
		if place, wrong := doc.validate(property, o[k], strings.TrimPrefix(at+"."+k, ".")); wrong != "" {
			return place, wrong
		}
	}
	return "", ""
}

func wrongString(s *schema, v any) string {
	str, ok := v.(string)
	if !ok {
		if _, number := v.(float64); number && (s.Format == "int64" || s.Format == "uint64") {
			return ""
		}
		return invalid("string", v)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, str) {
		return invalid("one of "+strings.Join(s.Enum, ", "), v)
	}
	return ""
}

func invalid(want string, v any) string { return fmt.Sprintf("Invalid value (%s), %.80v", want, v) }
