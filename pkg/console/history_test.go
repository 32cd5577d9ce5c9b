package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func probed(at time.Time, o fleet.Outcome, ms int64) []fleet.Proxy {
	return []fleet.Proxy{external("a", func(p *fleet.Proxy) {
		p.Status.Health = fleet.Health{Outcome: o, LatencyMs: ms, LastProbeTime: at}
	})}
}

func TestTheLastProbesAreRemembered(t *testing.T) {
	t.Parallel()
	h := history{}
	h.note(probed(time.Time{}, "", 0))
	require.Empty(t, h, "not probed yet")
	for i := range probesKept + 5 {
		h.note(probed(now.Add(time.Duration(i)*time.Minute), fleet.OutcomeOK, int64(i)))
		h.note(probed(now.Add(time.Duration(i)*time.Minute), fleet.OutcomeOK, int64(i))) // the same probe, seen again
	}
	require.Len(t, h["a"], probesKept)
	require.EqualValues(t, probesKept+4, h["a"][probesKept-1].Latency, "the newest is last")
	h.note(nil)
	require.Empty(t, h, "a proxy that is gone is forgotten")
}

func TestASparklineShowsLatencyAndFailures(t *testing.T) {
	t.Parallel()
	require.Nil(t, sparkOf(nil))
	require.Nil(t, sparkOf([]probe{{now, fleet.OutcomeOK, 5}}))
	s := sparkOf([]probe{{now, fleet.OutcomeOK, 100}, {now, fleet.OutcomeTimeout, 9000}, {now, fleet.OutcomeOK, 50}, {now, fleet.OutcomeOK, 0}})
	require.Equal(t, []bar{{0, 0, 16, "up"}, {4, 0, 16, "down"}, {8, 8, 8, "up"}, {12, 14, 2, "up"}}, s.Bars)
	require.Equal(t, 16, s.Width)
	require.Equal(t, "last 4 probes: 1 failed, slowest 100 ms", s.Words)
}
