package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

var start = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

func defaults(change ...func(*fleet.HealthCheck)) fleet.HealthCheck {
	c := fleet.Spec{}.HealthCheckOrDefault()
	for _, f := range change {
		f(&c)
	}
	return c
}

// TestVerdictsFollowThresholdsBothWays plays probes, one a minute, and looks at the verdict after each.
func TestVerdictsFollowThresholdsBothWays(t *testing.T) {
	t.Parallel()
	thresholds := func(healthy, unhealthy int32) func(*fleet.HealthCheck) {
		return func(c *fleet.HealthCheck) { c.HealthyThreshold, c.UnhealthyThreshold = healthy, unhealthy }
	}
	ignore := func(c *fleet.HealthCheck) { c.OnBlocked = fleet.OnBlockedIgnore }
	const (
		ok  = fleet.OutcomeOK
		bad = fleet.OutcomeReset
		not = fleet.OutcomeInconclusive
		blk = fleet.OutcomeBlocked
	)
	for name, row := range map[string]struct {
		check    fleet.HealthCheck
		outcomes []fleet.Outcome
		want     string // after each: H healthy, u unhealthy; in capitals X, Y where the verdict flipped (X up, Y down)
	}{
		"one success makes healthy by default":                {defaults(), []fleet.Outcome{ok, ok}, "XH"},
		"one failure then success stays healthy":              {defaults(), []fleet.Outcome{ok, bad, ok, bad, bad, ok}, "XHHHHH"},
		"three failures in a row make unhealthy":              {defaults(), []fleet.Outcome{ok, bad, bad, bad, bad}, "XHHYu"},
		"two successes in a row make healthy again":           {defaults(thresholds(2, 1)), []fleet.Outcome{ok, ok, bad, ok, bad, ok, ok, ok}, "uXYuuuXH"},
		"a threshold of one flips at once":                    {defaults(thresholds(1, 1)), []fleet.Outcome{ok, bad, ok, bad}, "XYXY"},
		"what was never healthy stays so":                     {defaults(), []fleet.Outcome{bad, bad, bad, bad}, "uuuu"},
		"inconclusive changes nothing":                        {defaults(), []fleet.Outcome{ok, bad, bad, not, not, not, bad}, "XHHHHHY"},
		"inconclusive does not make healthy":                  {defaults(), []fleet.Outcome{not, not}, "uu"},
		"blocked counts as a failure by default":              {defaults(), []fleet.Outcome{ok, blk, blk, blk}, "XHHY"},
		"blocked counts neither way when it is to be ignored": {defaults(ignore), []fleet.Outcome{ok, blk, blk, blk, bad, bad, blk, bad}, "XHHHHHHY"},
		"different failures add up":                           {defaults(), []fleet.Outcome{ok, fleet.OutcomeDNS, fleet.OutcomeTLS, fleet.OutcomeRefused}, "XHHY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h fleet.Health
			got := ""
			for i, outcome := range row.outcomes {
				j := Judge(h, Observation{Result: Result{Outcome: outcome}, Tick: at(i)}, row.check, 0, at(i))
				letter := map[bool]string{true: "H", false: "u"}[j.Health.Healthy]
				if j.Flipped {
					letter = map[bool]string{true: "X", false: "Y"}[j.Health.Healthy]
				}
				got += letter
				h = j.Health
			}
			assert.Equal(t, row.want, got)
		})
	}
}

func TestJudgeCountsOnlyWhatIsNewAndItsOwn(t *testing.T) {
	t.Parallel()
	healthy := fleet.Health{Incarnation: 2, Tick: at(5), LastProbeTime: at(5), Healthy: true, Outcome: fleet.OutcomeOK, ConsecutiveSuccesses: 1}
	failing := Observation{Result: Result{Outcome: fleet.OutcomeReset, Detail: "d", Latency: 7 * time.Millisecond}, Incarnation: 2, Tick: at(6)}
	change := func(f func(*Observation)) Observation { o := failing; f(&o); return o }
	for name, row := range map[string]struct {
		o       Observation
		current int64
		dropped Dropped
	}{
		"a newer tick counts":                  {failing, 2, ""},
		"the same tick again is dropped":       {change(func(o *Observation) { o.Tick = at(5) }), 2, DroppedStale},
		"an older tick is dropped":             {change(func(o *Observation) { o.Tick = at(4) }), 2, DroppedStale},
		"an older incarnation is dropped":      {change(func(o *Observation) { o.Incarnation = 1 }), 2, DroppedForeign},
		"a newer incarnation is dropped":       {change(func(o *Observation) { o.Incarnation = 3 }), 2, DroppedForeign},
		"a result of what is gone is dropped":  {failing, 3, DroppedForeign},
		"inconclusive is dropped":              {change(func(o *Observation) { o.Outcome = fleet.OutcomeInconclusive }), 2, DroppedInconclusive},
		"stale and inconclusive: stale":        {change(func(o *Observation) { o.Outcome, o.Tick = fleet.OutcomeInconclusive, at(1) }), 2, DroppedStale},
		"foreign comes before anything else":   {change(func(o *Observation) { o.Tick, o.Incarnation = at(1), 9 }), 2, DroppedForeign},
		"a tick one microsecond later is new":  {change(func(o *Observation) { o.Tick = at(5).Add(time.Microsecond) }), 2, ""},
		"a tick long ago is stale, not absent": {change(func(o *Observation) { o.Tick = time.Unix(1, 0) }), 2, DroppedStale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := Judge(healthy, row.o, defaults(), row.current, at(6))
			assert.Equal(t, row.dropped, j.Dropped)
			if row.dropped != "" {
				assert.Equal(t, Judgement{Health: healthy, Dropped: row.dropped}, j, "what is dropped changes nothing")
				return
			}
			assert.Equal(t, Judgement{Changed: true, Health: fleet.Health{
				Incarnation: 2, Tick: row.o.Tick, LastProbeTime: at(6), Healthy: true, Outcome: fleet.OutcomeReset, Detail: "d",
				LatencyMs: 7, ConsecutiveFailures: 1,
			}}, j)
		})
	}
}

func TestANewInstanceProvesItselfAnew(t *testing.T) {
	t.Parallel()
	old := fleet.Health{Incarnation: 1, Tick: at(50), LastProbeTime: at(50), Healthy: true, Outcome: fleet.OutcomeOK, ConsecutiveSuccesses: 1, ExitAddress: "192.0.2.1"}
	failed := Judge(old, Observation{Result: Result{Outcome: fleet.OutcomeRefused}, Incarnation: 2, Tick: at(1)}, defaults(), 2, at(1))
	assert.True(t, failed.Changed, "the former instance's ticks do not matter")
	assert.False(t, failed.Flipped, "nothing was said of this instance before")
	assert.Equal(t, fleet.Health{Incarnation: 2, Tick: at(1), LastProbeTime: at(1), Outcome: fleet.OutcomeRefused, ConsecutiveFailures: 1}, failed.Health)
	passed := Judge(old, Observation{Result: Result{Outcome: fleet.OutcomeOK}, Incarnation: 2, Tick: at(1)}, defaults(), 2, at(1))
	assert.True(t, passed.Flipped, "leases may go to this instance from now on")
	assert.True(t, passed.Health.Healthy)
}

func TestAProxyAtRestChangesNothingButForAHeartbeat(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]fleet.Outcome{"healthy": fleet.OutcomeOK, "unhealthy": fleet.OutcomeConnectTimeout} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h fleet.Health
			writes := map[int]bool{}
			for minute := range 20 {
				o := Observation{Tick: at(minute), Result: Result{Outcome: outcome, Detail: "d", Latency: time.Duration(minute) * time.Millisecond}}
				j := Judge(h, o, defaults(), 0, at(minute))
				if j.Changed {
					writes[minute] = true
					assert.Equal(t, at(minute), j.Health.LastProbeTime)
					assert.Equal(t, at(minute), j.Health.Tick)
				}
				h = j.Health
			}
			want := map[int]bool{0: true, 5: true, 10: true, 15: true}
			if outcome != fleet.OutcomeOK {
				want = map[int]bool{0: true, 1: true, 2: true, 7: true, 12: true, 17: true}
			}
			assert.Equal(t, want, writes)
		})
	}
}

func TestUnhealthySinceIsWhenTheVerdictWasReached(t *testing.T) {
	t.Parallel()
	var h fleet.Health
	play := func(minute int, o fleet.Outcome) fleet.Health {
		h = Judge(h, Observation{Tick: at(minute), Result: Result{Outcome: o}}, defaults(func(c *fleet.HealthCheck) { c.HealthyThreshold = 2 }), 0, at(minute)).Health
		return h
	}
	assert.Zero(t, play(0, fleet.OutcomeReset).UnhealthySince, "one failure says little")
	play(1, fleet.OutcomeReset)
	assert.Equal(t, at(2), play(2, fleet.OutcomeReset).UnhealthySince, "also of what was never healthy")
	assert.Equal(t, at(2), play(3, fleet.OutcomeDNS).UnhealthySince, "it does not move while it lasts")
	assert.Equal(t, at(2), play(4, fleet.OutcomeOK).UnhealthySince, "one success of two does not end it")
	assert.Equal(t, at(2), play(5, fleet.OutcomeReset).UnhealthySince)
	play(6, fleet.OutcomeOK)
	assert.Zero(t, play(7, fleet.OutcomeOK).UnhealthySince)
}

func TestTheExitAddressIsKeptAndItsChangeRecorded(t *testing.T) {
	t.Parallel()
	asks := defaults(func(c *fleet.HealthCheck) { c.ExitAddressFrom = "body" })
	passed := func(minute int, address string) Observation {
		return Observation{Tick: at(minute), Result: Result{Outcome: fleet.OutcomeOK, ExitAddress: address}}
	}
	h := Judge(fleet.Health{}, passed(0, "192.0.2.1"), asks, 0, at(0)).Health
	assert.Equal(t, "192.0.2.1", h.ExitAddress)
	assert.False(t, Judge(h, passed(1, "192.0.2.1"), asks, 0, at(1)).Changed)
	assert.False(t, Judge(h, passed(1, ""), asks, 0, at(1)).Changed, "a page without it takes nothing back")
	moved := Judge(h, passed(1, "192.0.2.9"), asks, 0, at(1))
	assert.True(t, moved.Changed)
	assert.Equal(t, "192.0.2.9", moved.Health.ExitAddress)
	assert.Empty(t, Judge(h, passed(1, ""), defaults(), 0, at(1)).Health.ExitAddress, "nobody asks any more")
}
