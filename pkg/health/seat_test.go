package health

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestJudgingLeavesTheDocumentThatWasReadAsItWas(t *testing.T) {
	t.Parallel()
	read := func() fleet.Proxy {
		return fleet.Proxy{Name: "a", Status: fleet.Status{
			Endpoint:   &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128},
			Conditions: fleet.Conditions{{Type: fleet.ConditionHealthy}, {Type: fleet.ConditionReady}},
		}}
	}
	p := read()
	next, j := apply(p, seat{}, Observation{Result: Result{Outcome: fleet.OutcomeOK}, Tick: at(1)}, at(1))
	assert.True(t, j.Flipped)
	assert.True(t, next.Status.Health.Healthy)
	assert.Equal(t, read(), p, "it is judged anew when the write loses")
}

func TestTheHealthyConditionSaysInWordsWhatTheNumbersSay(t *testing.T) {
	t.Parallel()
	check := defaults(func(c *fleet.HealthCheck) { c.HealthyThreshold = 2 })
	for name, row := range map[string]struct {
		health fleet.Health
		want   fleet.Condition
	}{
		"passing": {
			fleet.Health{Healthy: true, Outcome: fleet.OutcomeOK},
			fleet.Condition{Status: true, Reason: "ProbesPass"}},
		"healthy with a failure": {
			fleet.Health{Healthy: true, Outcome: fleet.OutcomeReset, Detail: "the connection broke", ConsecutiveFailures: 1},
			fleet.Condition{Status: true, Reason: "ProbesPass", Message: "1 of 3 failures in a row: " + fleet.OutcomeText(fleet.OutcomeReset) + ": the connection broke"}},
		"coming back": {
			fleet.Health{Outcome: fleet.OutcomeOK, ConsecutiveSuccesses: 1},
			fleet.Condition{Reason: "Recovering", Message: "1 of 2 successes in a row"}},
		"refused credentials": {
			fleet.Health{Outcome: fleet.OutcomeAuthFailed, ConsecutiveFailures: 3},
			fleet.Condition{Reason: "AuthFailed", Message: fleet.OutcomeText(fleet.OutcomeAuthFailed)}},
		"intercepted": {fleet.Health{Outcome: fleet.OutcomeTLS}, fleet.Condition{Reason: "TLS", Message: fleet.OutcomeText(fleet.OutcomeTLS)}},
		"unresolved":  {fleet.Health{Outcome: fleet.OutcomeDNS}, fleet.Condition{Reason: "DNS", Message: fleet.OutcomeText(fleet.OutcomeDNS)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.want.Type = fleet.ConditionHealthy
			assert.Equal(t, row.want, healthyCondition(row.health, check))
		})
	}
}
