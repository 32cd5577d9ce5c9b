package fleet

// rule is one row of the table of all that a document must keep.
type rule struct {
	id      string // R1..R7 for the seven rules that tie fields together, a word for ranges and formats
	path    string // field path that faults name
	message string // what must hold
	// check calls fault for each value that breaks the rule; at is what follows path, such as "[1]",
	// and mostly empty; value is what people wrote, empty where that is of no help.
	check func(c change, fault func(at, value string))
}

// change is what rules judge: a document, and what the plane accepted of it before, nil when there
// is nothing to compare with.
type change struct {
	before *Accepted
	Proxy
}

// rules returns the whole table: the seven rules, then ranges and formats in the order of the document.
func rules() []rule {
	return append(append(append(sevenRules(), formats()...), ranges()...), durations()...)
}

// sevenRules returns the rules of the operator's manifest schema, in its order.
func sevenRules() []rule {
	const fixed = "must not change: delete the proxy and apply it anew"
	return []rule{
		{"R1", "spec.mode", fixed, breaks(func(c change) (string, bool) {
			return optional(string(c.Spec.Mode)), c.before != nil && known(c.Spec.Mode) && c.before.Mode != c.Spec.Mode
		})},
		{"R2", "spec.provider", fixed, breaks(func(c change) (string, bool) {
			return optional(c.Spec.Provider), c.before != nil && c.before.Provider != c.Spec.Provider
		})},
		{"R3", "spec.provider", "must be set if mode is Managed, and only then", breaks(func(c change) (string, bool) {
			return optional(c.Spec.Provider), known(c.Spec.Mode) && (c.Spec.Provider != "") != (c.Spec.Mode == Managed)
		})},
		{"R4", "spec.endpoint.host", "must be set if mode is External, and only then", breaks(func(c change) (string, bool) {
			return optional(c.Spec.Endpoint.Host), known(c.Spec.Mode) && (c.Spec.Endpoint.Host != "") != (c.Spec.Mode == External)
		})},
		{"R5", "spec.placement", "must be set only if mode is Managed", breaks(func(c change) (string, bool) {
			return "", c.Spec.Mode == External && c.Spec.Placement != nil
		})},
		{"R6", "spec.cloudInit", "must be set only if mode is Managed", breaks(func(c change) (string, bool) {
			return "", c.Spec.Mode == External && c.Spec.CloudInit != nil
		})},
		{"R7", "spec.cloudInit", "must have exactly one of inline and secretRef", breaks(func(c change) (string, bool) {
			i := c.Spec.CloudInit
			return "", i != nil && !c.Broken.at("spec.cloudInit.inline") && (i.Inline != "") == (i.SecretRef != nil)
		})},
	}
}

func known(m Mode) bool { return m == Managed || m == External }

// breaks makes a check of a single value; its function reports the value and whether it is at fault.
func breaks(broken func(c change) (value string, broken bool)) func(change, func(at, value string)) {
	return func(c change, fault func(at, value string)) {
		if value, broken := broken(c); broken {
			fault("", value)
		}
	}
}
