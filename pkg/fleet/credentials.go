package fleet

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ParseCredentials splits "user:password" at the first colon: the password may hold any byte, the
// user name no colon, as Basic authentication has it (RFC 7617). The error never shows the payload.
func ParseCredentials(payload string) (user, password string, err error) {
	payload = strings.TrimSuffix(strings.TrimSuffix(payload, "\n"), "\r")
	user, password, ok := strings.Cut(payload, ":")
	if !ok || user == "" {
		return "", "", errors.New(`the credentials must read "user:password"`)
	}
	return user, password, nil
}

// ProxyURL returns the URL of a proxy that curl and other clients take: credentials percent-encoded,
// IPv6 addresses in brackets. Without a user there are no credentials in it.
func ProxyURL(host string, port int32, user, password string) string {
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}
