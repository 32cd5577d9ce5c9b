package fleet

import (
	"errors"
	"net"
	"strconv"
	"strings"
)

// ParseCredentials splits the payload of a credentials secret, "user:password", at its first colon.
// The password may hold any byte. The user name cannot hold a colon, as Basic authentication has no
// way to carry one (RFC 7617): what follows the first colon is the password. One line break at the
// end is not part of the password: editors and echo leave it there. The error never shows the payload.
func ParseCredentials(payload string) (user, password string, err error) {
	if line, broken := strings.CutSuffix(payload, "\n"); broken {
		payload = strings.TrimSuffix(line, "\r")
	}
	user, password, ok := strings.Cut(payload, ":")
	switch {
	case !ok:
		return "", "", errors.New(`the credentials must read "user:password": there is no colon`)
	case user == "":
		return "", "", errors.New(`the credentials must read "user:password": there is no user name`)
	}
	return user, password, nil
}

// ProxyURL returns the URL of a proxy that curl and other clients take: credentials percent-encoded
// byte by byte, IPv6 addresses in brackets. Without a user there are no credentials in it. All that
// is not a letter, a digit or one of "-._~" is encoded, so it is safe within a shell command, too.
func ProxyURL(host string, port int32, user, password string) string {
	address := net.JoinHostPort(host, strconv.Itoa(int(port)))
	if user == "" {
		return "http://" + address
	}
	return "http://" + percent(user) + ":" + percent(password) + "@" + address
}

// percent encodes all but the unreserved characters of RFC 3986.
func percent(s string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		out.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return out.String()
}
