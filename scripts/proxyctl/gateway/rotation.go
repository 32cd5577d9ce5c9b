package gateway

import (
	"fmt"
	"time"
)

// Rotation says how long a crawler stays on one proxy. The zero Rotation is PerRequest.
type Rotation struct {
	sticky bool
	every  time.Duration
}

// PerRequest takes a lease for each request or tunnel.
func PerRequest() Rotation { return Rotation{} }

// Sticky keeps each crawler on one proxy for each target host.
func Sticky() Rotation { return Rotation{sticky: true} }

// Every moves all of a crawler's new requests to another proxy when d has passed.
func Every(d time.Duration) Rotation { return Rotation{every: d} }

// ParseRotation reads "request", "sticky" or a duration of at least a second such as "30s".
func ParseRotation(s string) (Rotation, error) {
	switch s {
	case "request":
		return PerRequest(), nil
	case "sticky":
		return Sticky(), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second {
		return Rotation{}, fmt.Errorf("%q: must be request, sticky or a duration of at least 1s", s)
	}
	return Every(d), nil
}

// key is under what a lease is shared; empty means not at all.
func (r Rotation) key(client, target string) string {
	switch {
	case r.sticky:
		return "sticky " + client + " " + target
	case r.every > 0:
		return "every " + client
	}
	return ""
}

// stickyKey is what the lease function chooses the proxy by; empty leaves it free.
func (r Rotation) stickyKey(client, target string) string {
	if r.sticky {
		return client + " " + target
	}
	return ""
}

// over reports whether a lease that was taken at since has served its time.
func (r Rotation) over(since, now time.Time) bool { return r.every > 0 && now.Sub(since) >= r.every }
