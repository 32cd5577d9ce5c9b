package fleet

import (
	"fmt"
	"strconv"
	"time"
)

// limit is the range of a whole number. 0 in a Spec means left out, hence the default; a document that
// says 0 where low is above it is at fault: Decode sees that.
type limit struct {
	path      string
	low, high int32
	get       func(Spec) int32
}

func (l limit) message() string { return fmt.Sprintf("must be between %d and %d", l.low, l.high) }

// limits returns the ranges of all whole numbers of a Spec.
func limits() []limit {
	const health = "spec.healthCheck."
	return []limit{
		{"spec.endpoint.port", 1, 65535, func(s Spec) int32 { return s.Endpoint.Port }},
		{health + "expectedStatus", 100, 599, func(s Spec) int32 { return s.healthCheck().ExpectedStatus }},
		{health + "intervalSeconds", 60, 3600, func(s Spec) int32 { return s.healthCheck().IntervalSeconds }}, // the tick is a minute
		{health + "timeoutSeconds", 1, 60, func(s Spec) int32 { return s.healthCheck().TimeoutSeconds }},
		{health + "healthyThreshold", 1, 100, func(s Spec) int32 { return s.healthCheck().HealthyThreshold }},
		{health + "unhealthyThreshold", 1, 100, func(s Spec) int32 { return s.healthCheck().UnhealthyThreshold }},
		{"spec.maxLeases", 0, 1000, Spec.MaxLeasesOrDefault},
	}
}

func ranges() []rule {
	var out []rule
	for _, l := range limits() {
		out = append(out, rule{l.path, l.path, l.message(), breaks(func(c change) (string, bool) {
			v := l.get(c.Spec)
			return strconv.Itoa(int(v)), v != 0 && (v < l.low || v > l.high)
		})})
	}
	return out
}

const day = 24 * time.Hour

// durations returns the rules of the lifecycle's durations.
func durations() []rule {
	const path = "spec.lifecycle."
	var out []rule
	for _, d := range []struct {
		path      string
		low, high time.Duration
		get       func(Lifecycle) *Duration
	}{
		{path + "provisionTimeout", time.Second, day, func(l Lifecycle) *Duration { return l.ProvisionTimeout }},
		{path + "replaceUnhealthyAfter", 0, 30 * day, func(l Lifecycle) *Duration { return l.ReplaceUnhealthyAfter }},
		{path + "maxAge", 0, 365 * day, func(l Lifecycle) *Duration { return l.MaxAge }},
		{path + "drainTimeout", 0, day, func(l Lifecycle) *Duration { return l.DrainTimeout }},
	} {
		message := fmt.Sprintf("must be between %s and %s", Duration(d.low), Duration(d.high))
		out = append(out, rule{d.path, d.path, message, breaks(func(c change) (string, bool) {
			if c.Spec.Lifecycle == nil || d.get(*c.Spec.Lifecycle) == nil {
				return "", false
			}
			v := *d.get(*c.Spec.Lifecycle)
			return v.String(), time.Duration(v) < d.low || time.Duration(v) > d.high
		})})
	}
	return out
}
