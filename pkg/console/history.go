package console

import (
	"fmt"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// probe is one that this page has seen the outcome of.
type probe struct {
	Time    time.Time
	Outcome fleet.Outcome
	Latency int64 // milliseconds
}

// probesKept is how many of the last probes of a proxy are shown.
const probesKept = 20

// history remembers the last probes of each proxy for as long as the instance lives and somebody looks;
// documents keep the last one only.
type history map[string][]probe

// note adds what a snapshot tells and forgets proxies that are gone.
func (h history) note(proxies []fleet.Proxy) {
	there := map[string]bool{}
	for _, p := range proxies {
		there[p.Name] = true
		seen, last := h[p.Name], p.Status.Health
		if last.LastProbeTime.IsZero() || len(seen) > 0 && !last.LastProbeTime.After(seen[len(seen)-1].Time) {
			continue
		}
		seen = append(seen, probe{last.LastProbeTime, last.Outcome, last.LatencyMs})
		h[p.Name] = seen[max(0, len(seen)-probesKept):]
	}
	for name := range h {
		if !there[name] {
			delete(h, name)
		}
	}
}

// bar is one probe in a sparkline, in pixels.
type bar struct {
	X, Y, Height int
	Class        string
}

// spark is a row of bars, oldest first, and the same in words.
type spark struct {
	Bars  []bar
	Width int
	Words string
}

// The size of a sparkline, in pixels.
const (
	barStep   = 4
	barHeight = 16
)

// sparkOf draws latency as height, relative to the slowest; a failed probe is a full bar in red. One
// probe is no line: it is written out beside it.
func sparkOf(probes []probe) *spark {
	if len(probes) < 2 {
		return nil
	}
	slowest, failed := int64(1), 0
	for _, p := range probes {
		if p.Outcome == fleet.OutcomeOK {
			slowest = max(slowest, p.Latency)
		} else {
			failed++
		}
	}
	s := &spark{Width: len(probes) * barStep, Words: fmt.Sprintf("last %d probes: %d failed, slowest %d ms", len(probes), failed, slowest)}
	for i, p := range probes {
		b := bar{X: i * barStep, Height: barHeight, Class: "down"}
		if p.Outcome == fleet.OutcomeOK {
			b.Height, b.Class = max(2, int(p.Latency*barHeight/slowest)), "up"
		}
		b.Y = barHeight - b.Height
		s.Bars = append(s.Bars, b)
	}
	return s
}
