package fleet

import (
	"slices"
	"strings"
)

// Validate returns all faults of a document that can be seen without knowing what it was before: what
// did not decode, the rules R3 to R7, ranges and formats. It never panics, whatever the document holds.
func Validate(p Proxy) Faults { return validate(change{Proxy: p}) }

// ValidateUpdate returns all faults of next, those included that come from what it was before: mode
// and provider are immutable. Before is what the plane accepted last of old or, where it has accepted
// nothing yet, what old's spec says, provided that a proxy could have been made of that.
func ValidateUpdate(old, next Proxy) Faults {
	before := old.Status.Accepted
	if s := old.Spec; before == nil && known(s.Mode) && (s.Provider != "") == (s.Mode == Managed) {
		before = &Accepted{Mode: s.Mode, Provider: s.Provider}
	}
	return validate(change{before: before, Proxy: next})
}

func validate(c change) Faults {
	faults := slices.Clone(c.Broken)
	for _, r := range rules() {
		r.check(c, func(at, value string) {
			path := r.path + at
			if !c.Broken.at(path) { // what did not decode is not judged a second time
				faults = append(faults, Fault{Rule: r.id, Path: path, Value: show(value), Message: r.message})
			}
		})
	}
	return faults
}

// at reports whether one of the faults is of path or of something around it.
func (fs Faults) at(path string) bool {
	return slices.ContainsFunc(fs, func(f Fault) bool {
		rest, inside := strings.CutPrefix(path, f.Path)
		return inside && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
