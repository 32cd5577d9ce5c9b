package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestReadyConditionSaysWhetherNewLeasesMayGoToAProxy(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*Proxy)
		want   bool
		reason string
	}{
		"healthy and reachable: ready":            {func(*Proxy) {}, true, "Ready"},
		"no endpoint: not ready":                  {func(p *Proxy) { p.Status.Endpoint = nil }, false, "Pending"},
		"External not seen by a run: not ready":   {func(p *Proxy) { p.Spec.Mode, p.Status.UID, p.Status.Endpoint = External, "u", nil }, false, "Pending"},
		"unhealthy: not ready":                    {func(p *Proxy) { p.Status.Health.Healthy = false }, false, "Unhealthy"},
		"health of a former instance: not ready":  {func(p *Proxy) { p.Status.Health.Incarnation = 1 }, false, "Pending"},
		"paused: not ready":                       {func(p *Proxy) { p.Spec.Paused = true }, false, "Paused"},
		"maxLeases 0: not ready":                  {func(p *Proxy) { p.Spec.MaxLeases = new(int32) }, false, "Disabled"},
		"deletion asked for: not ready":           {func(p *Proxy) { p.DeleteTime = time.Unix(1, 0) }, false, "Deleting"},
		"refused by the cloud: not ready":         {func(p *Proxy) { p.Status.Phase = PhaseFailed }, false, "Failed"},
		"making way for a successor: not ready":   {func(p *Proxy) { p.Status.Drain = &Drain{Reason: "MaxAge", Incarnation: 2} }, false, "Draining"},
		"its predecessor drains: ready":           {func(p *Proxy) { p.Status.Drain = &Drain{Reason: "MaxAge", Incarnation: 1} }, true, "Ready"},
		"a document that breaks a rule: rejected": {func(p *Proxy) { p.Broken = Faults{{Path: "spec", Message: "must be"}} }, false, "Rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Proxy{Name: "a", Spec: Spec{Mode: Managed}, Status: Status{
				Endpoint: &StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: 2},
				Health:   Health{Incarnation: 2, Healthy: true, LastProbeTime: time.Unix(9, 0)},
			}}
			row.change(&p)
			c := ReadyCondition(p)
			assert.Equal(t, ConditionReady, c.Type)
			assert.Equal(t, row.want, c.Status, c.Message)
			assert.Equal(t, row.reason, c.Reason)
			assert.NotEmpty(t, c.Message)
		})
	}
}

func TestVerdictOfSaysWhatTheCatalogIsToHave(t *testing.T) {
	t.Parallel()
	flipped := time.Unix(5, 0).UTC()
	p := Proxy{Status: Status{
		Health:     Health{Incarnation: 3, Healthy: true, Outcome: OutcomeReset, ConsecutiveFailures: 1},
		Conditions: Conditions{{Type: ConditionHealthy, Status: true, LastTransitionTime: flipped}},
	}}
	assert.Equal(t, Verdict{Healthy: true, Outcome: OutcomeOK, Incarnation: 3, Since: flipped}, VerdictOf(p), "one failure changes no entry")
	p.Status.Health.Healthy = false
	assert.Equal(t, Verdict{Outcome: OutcomeReset, Incarnation: 3, Since: flipped}, VerdictOf(p))
}
