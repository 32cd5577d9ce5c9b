package health

import (
	"net/netip"
	"strings"
	"unicode"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// exitAddress finds the caller's address in an answer: the first IP address in the header or page.
// It is empty when the check does not ask or the target does not tell.
func (a answer) exitAddress(check fleet.HealthCheck) string {
	switch check.ExitAddressFrom {
	case "header":
		return firstAddress(a.header.Get(check.ExitAddressHeader))
	case "body":
		return firstAddress(string(a.body))
	}
	return ""
}

// firstAddress finds an IP address among other text, such as JSON, and returns its canonical form.
func firstAddress(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '.' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for _, word := range words {
		addr, err := netip.ParseAddr(strings.TrimRight(word, "."))
		if err != nil {
			withPort, err := netip.ParseAddrPort(word)
			if err != nil {
				continue
			}
			addr = withPort.Addr()
		}
		if !addr.IsUnspecified() {
			return addr.Unmap().String()
		}
	}
	return ""
}
