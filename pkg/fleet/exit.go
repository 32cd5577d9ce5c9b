package fleet

import (
	"slices"
	"strings"
)

// SharedExits finds Managed proxies whose traffic leaves by one and the same address: crawlers that
// are given two of them look like one visitor. It maps the name of each to the others' names, sorted.
func SharedExits(proxies []Proxy) map[string][]string {
	by := map[string][]string{}
	for _, p := range proxies {
		if address := p.Status.Health.ExitAddress; p.Spec.Mode == Managed && address != "" {
			by[address] = append(by[address], p.Name)
		}
	}
	shared := map[string][]string{}
	for _, names := range by {
		if len(names) < 2 {
			continue
		}
		slices.Sort(names)
		for i, name := range names {
			shared[name] = slices.Concat(names[:i], names[i+1:])
		}
	}
	return shared
}

// maxNamed is how many names a condition's message spells out.
const maxNamed = 5

// ExitAddressCondition is p's warning that it shares its exit address with others; warn is false
// when there are none, and a condition that was set before is to be dropped.
func ExitAddressCondition(p Proxy, others []string) (c Condition, warn bool) {
	if len(others) == 0 {
		return Condition{}, false
	}
	named := strings.Join(others[:min(len(others), maxNamed)], ", ")
	if len(others) > maxNamed {
		named += " and more"
	}
	return Condition{
		Type: ConditionExitAddressShared, Status: true, Reason: "SameExitAddress",
		Message: p.Status.Health.ExitAddress + " is also the exit of " + named,
	}, true
}
