package fleet

// rule is one of the seven rules that tie fields together. check returns the fault's path, value
// and true when the rule is broken. old is nil when there is nothing to compare with.
type rule struct {
	id      string
	message string
	check   func(old *Accepted, p Proxy) (path, value string, broken bool)
}

// rules returns the seven rules in the order in which the operator's manifest schema had them.
func rules() []rule {
	return []rule{
		{"R1", "must not change: delete the proxy and apply it anew", func(old *Accepted, p Proxy) (string, string, bool) {
			return "spec.mode", string(p.Spec.Mode), old != nil && old.Mode != p.Spec.Mode
		}},
		{"R2", "must not change: delete the proxy and apply it anew", func(old *Accepted, p Proxy) (string, string, bool) {
			return "spec.provider", p.Spec.Provider, old != nil && old.Mode == p.Spec.Mode && old.Provider != p.Spec.Provider
		}},
		{"R3", "must be set if mode is Managed, and only then", func(_ *Accepted, p Proxy) (string, string, bool) {
			return "spec.provider", p.Spec.Provider, knownMode(p) && (p.Spec.Provider != "") != (p.Spec.Mode == Managed)
		}},
		{"R4", "must be set if mode is External, and only then", func(_ *Accepted, p Proxy) (string, string, bool) {
			return "spec.endpoint.host", p.Spec.Endpoint.Host, knownMode(p) && (p.Spec.Endpoint.Host != "") != (p.Spec.Mode == External)
		}},
		{"R5", "must be set only if mode is Managed", func(_ *Accepted, p Proxy) (string, string, bool) {
			return "spec.placement", "", knownMode(p) && p.Spec.Placement != nil && p.Spec.Mode != Managed
		}},
		{"R6", "must be set only if mode is Managed", func(_ *Accepted, p Proxy) (string, string, bool) {
			return "spec.cloudInit", "", knownMode(p) && p.Spec.CloudInit != nil && p.Spec.Mode != Managed
		}},
		{"R7", "must have exactly one of inline and secretRef", func(_ *Accepted, p Proxy) (string, string, bool) {
			c := p.Spec.CloudInit
			return "spec.cloudInit", "", c != nil && (c.Inline != "") == (c.SecretRef != nil)
		}},
	}
}

func knownMode(p Proxy) bool { return p.Spec.Mode == Managed || p.Spec.Mode == External }
