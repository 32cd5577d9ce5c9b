package fleet

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const awkward = "p:@/?#%é \"`$&;'\\+\x00\xff\n"

func TestThePasswordMayHoldAnyByteAndTheUserNameNoColon(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ payload, user, password string }{
		"plain": {"crawler:hunter2", "crawler", "hunter2"},
		"a user name can have no colon, so it ends there": {"craw:ler:hunter2", "craw", "ler:hunter2"},
		"colons in the password":                          {"crawler:a:b:", "crawler", "a:b:"},
		"awkward bytes":                                   {"crawler:" + awkward + "x", "crawler", awkward + "x"},
		"no password":                                     {"crawler:", "crawler", ""},
		"spaces are part of it":                           {" crawler : x ", " crawler ", " x "},
		"the line break of an editor":                     {"crawler:x\n", "crawler", "x"},
		"the line break of another editor":                {"crawler:x\r\n", "crawler", "x"},
		"no more than one line break":                     {"crawler:x\n\n", "crawler", "x\n"},
		"a carriage return alone is no break":             {"crawler:x\r", "crawler", "x\r"},
		"percent signs are not decoded":                   {"a%3Ab:c%3Ad", "a%3Ab", "c%3Ad"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, password, err := ParseCredentials(row.payload)
			require.NoError(t, err)
			assert.Equal(t, row.user, user)
			assert.Equal(t, row.password, password)
		})
	}
}

func TestCredentialsThatAreNoneAreRefusedWithoutShowingThem(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{"hunter2": "there is no colon", "": "there is no colon", "\n": "there is no colon", ":hunter2": "there is no user name"} {
		user, password, err := ParseCredentials(payload)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.Empty(t, user+password)
	}
}

func TestTheURLOfAProxyDecodesBackByteByByte(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, password := range []string{awkward, string(all), "", "+", "%41"} {
		for _, host := range []string{"proxy.example.net", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"} {
			text := ProxyURL(host, 3128, "us/er@x", password)
			assert.Regexp(t, `^http://[A-Za-z0-9._~%-]+:[A-Za-z0-9._~%-]*@[^@]+:3128$`, text)
			u, err := url.Parse(text)
			require.NoError(t, err)
			got, set := u.User.Password()
			assert.True(t, set)
			assert.Equal(t, password, got)
			assert.Equal(t, "us/er@x", u.User.Username())
			assert.Equal(t, host, u.Hostname())
			assert.Equal(t, "3128", u.Port())
		}
	}
}

func TestTheURLOfAProxyIsWhatClientsTake(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "http://proxy.example.net:3128", ProxyURL("proxy.example.net", 3128, "", ""))
	assert.Equal(t, "http://[2001:db8::1]:80", ProxyURL("2001:db8::1", 80, "", ""))
	assert.Equal(t, "http://crawler:p%3A%40%2F%3F%23%25%C3%A9%20%22@[2001:db8::1]:3128", ProxyURL("2001:db8::1", 3128, "crawler", `p:@/?#%é "`))
}
