package health

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestTheExitAddressIsFoundWhereTheTargetTellsIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.1\n":                             "192.0.2.1",
		`{"origin": "192.0.2.1"}`:                 "192.0.2.1",
		"fl=1\nip=192.0.2.1\nts=1764583200.5\n":   "192.0.2.1",
		"<p>You are 192.0.2.1.</p>":               "192.0.2.1",
		"192.0.2.1, 198.51.100.1":                 "192.0.2.1",
		"192.0.2.1:41234":                         "192.0.2.1",
		"2001:DB8:0::1":                           "2001:db8::1",
		"[2001:db8::1]:443":                       "2001:db8::1",
		"::ffff:192.0.2.1":                        "192.0.2.1",
		"std::bad_alloc, version 1.2.3, at 10:30": "",
		"::":              "",
		"no address here": "",
		"":                "",
	} {
		assert.Equal(t, want, firstAddress(text), "%q", text)
	}
}

func TestTheExitAddressIsLookedForWhereTheCheckSays(t *testing.T) {
	t.Parallel()
	a := answer{header: http.Header{"X-Client-Address": {"192.0.2.1"}, "X-Other": {"192.0.2.2"}}, body: []byte("192.0.2.3")}
	check := fleet.Spec{}.HealthCheckOrDefault()
	assert.Empty(t, a.exitAddress(check))
	check.ExitAddressFrom = "header"
	assert.Equal(t, "192.0.2.1", a.exitAddress(check))
	check.ExitAddressHeader = "x-other"
	assert.Equal(t, "192.0.2.2", a.exitAddress(check))
	check.ExitAddressFrom = "body"
	assert.Equal(t, "192.0.2.3", a.exitAddress(check))
}
