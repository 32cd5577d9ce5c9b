package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestManagedProxiesWithOneExitAddressAreFlagged(t *testing.T) {
	t.Parallel()
	proxy := func(name string, mode Mode, exit string) Proxy {
		return Proxy{Name: name, Spec: Spec{Mode: mode}, Status: Status{Health: Health{ExitAddress: exit}}}
	}
	all := []Proxy{
		proxy("c", Managed, "192.0.2.1"), proxy("a", Managed, "192.0.2.1"), proxy("b", Managed, "192.0.2.1"),
		proxy("alone", Managed, "192.0.2.2"), proxy("external", External, "192.0.2.2"), // a shared gateway is its owner's choice
		proxy("unknown", Managed, ""), proxy("unknown-too", Managed, ""),
	}
	assert.Equal(t, map[string][]string{"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}}, SharedExits(all))
	assert.Empty(t, SharedExits(nil))
}

func TestTheWarningNamesWhoSharesTheAddress(t *testing.T) {
	t.Parallel()
	p := Proxy{Name: "a", Status: Status{Health: Health{ExitAddress: "192.0.2.1"}}}
	c, warn := ExitAddressCondition(p, []string{"b", "c"})
	assert.True(t, warn)
	assert.Equal(t, Condition{Type: ConditionExitAddressShared, Status: true, Reason: "SameExitAddress", Message: "192.0.2.1 is also the exit of b, c"}, c)
	c, _ = ExitAddressCondition(p, []string{"b", "c", "d", "e", "f", "g"})
	assert.Equal(t, "192.0.2.1 is also the exit of b, c, d, e, f and more", c.Message)
	_, warn = ExitAddressCondition(p, nil)
	assert.False(t, warn)
}
