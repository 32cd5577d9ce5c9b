package fleet

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

var (
	dnsLabel   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)                                                          // RFC 1123
	dnsName    = regexp.MustCompile(`^([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$`) // RFC 1123, any case
	labelKey   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)       // as in Kubernetes
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	secretName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)             // Secret Manager
	cloudName  = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)  // RFC 1035
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,80}$") // RFC 9110, token
	digits     = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)$`)
)

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
	return len(host) <= 253 && dnsName.MatchString(host) && !digits.MatchString(last)
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
