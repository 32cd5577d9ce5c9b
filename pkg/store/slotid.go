package store

import (
	"strconv"
	"strings"
)

// SlotID returns the document id of a slot: "{proxy}.{n}". As proxies have no dot in their names,
// no two slots share one. Ids sort as strings: slot 10 comes before slot 2.
func SlotID(proxy string, n int) string { return SlotPrefix(proxy) + strconv.Itoa(n) }

// SlotPrefix returns what all slot ids of one proxy, and of no other, begin with.
func SlotPrefix(proxy string) string { return proxy + "." }

// ParseSlotID returns whose place a slot id names; ok is false for what is no slot id.
func ParseSlotID(id string) (proxy string, n int, ok bool) {
	proxy, number, _ := strings.Cut(id, ".")
	n, err := strconv.Atoi(number)
	return proxy, n, err == nil && proxy != "" && n >= 0 && SlotID(proxy, n) == id
}
