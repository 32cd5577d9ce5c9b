package fleet

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// pattern is a shape and the longest text that may have it. The length is no part of the shape: counted
// repetitions make expressions of a megabyte, which every process would build when it starts.
type pattern struct {
	shape *regexp.Regexp
	most  int
}

// MatchString reports whether s has the shape and is not too long.
func (p pattern) MatchString(s string) bool { return len(s) <= p.most && p.shape.MatchString(s) }

var (
	dnsLabel   = pattern{regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`), 63}            // RFC 1123
	labelPath  = pattern{regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`), 253}          // as in Kubernetes: what is before the slash
	labelName  = pattern{regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`), 63} // and what is behind it
	labelValue = pattern{regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`), 63}
	secretName = pattern{regexp.MustCompile(`^[A-Za-z0-9_-]+$`), 255}             // Secret Manager
	cloudName  = pattern{regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`), 63}  // RFC 1035
	headerName = pattern{regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"), 80} // RFC 9110, token
	digits     = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)$`)
)

// validLabelKey takes a name, or a DNS name, a slash and a name.
func validLabelKey(key string) bool {
	if path, name, ok := strings.Cut(key, "/"); ok {
		return labelPath.MatchString(path) && labelName.MatchString(name)
	}
	return labelName.MatchString(key)
}

// dnsName reports whether host is labels of RFC 1123, in any case, with dots between.
func dnsName(host string) bool {
	for label := range strings.SplitSeq(strings.ToLower(host), ".") {
		if !dnsLabel.MatchString(label) {
			return false
		}
	}
	return true
}

// validProvider has the providers file's own idea of a name; empty is for R3 to judge.
func validProvider(name string) bool {
	for _, r := range name {
		if r <= ' ' || r >= 0x7f && r < 0xa1 || r == '\ufffd' {
			return false
		}
	}
	return len(name) <= 63
}

// validHost takes an IPv4 address, an IPv6 address without zone, or a host name.
func validHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast()
	}
	host = strings.TrimSuffix(host, ".")
	// What ends in a number is a slip in an IPv4 address, not a name.
	last := host[strings.LastIndexByte(host, '.')+1:]
	return len(host) <= 253 && dnsName(host) && !digits.MatchString(last)
}

// validTarget takes what a probe can ask for.
func validTarget(s string) bool {
	u, err := url.Parse(s)
	if err != nil || len(s) > 2048 || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()) {
		return false
	}
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.Atoi(u.Port())
	return err == nil && port >= 1 && port <= 65535
}
