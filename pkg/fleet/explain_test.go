package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var explainNow = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return explainNow.Add(-d) }

// up is a Managed proxy that works.
func up() Proxy {
	p := managed()
	p.Status = Status{
		UID: "u", Phase: PhaseRunning, Instance: &Instance{Name: "proxy-1", Incarnation: 1}, Endpoint: &StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: 1},
		Health: Health{Incarnation: 1, Healthy: true, Outcome: OutcomeOK, LastProbeTime: ago(time.Minute)},
	}
	p.Status.Conditions.Set(Condition{Type: ConditionReady, Status: true}, ago(time.Hour))
	return p
}

func TestAProxyIsExplainedInWords(t *testing.T) {
	t.Parallel()
	provisioned := func(message string) func(*Proxy) {
		return func(p *Proxy) {
			p.Status.Endpoint = nil
			p.Status.Conditions.Set(Condition{Type: ConditionProvisioned, Reason: "Waiting", Message: message}, ago(2*time.Minute))
		}
	}
	sick := func(p *Proxy) {
		p.Status.Health = Health{Incarnation: 1, Outcome: OutcomeRefused, Detail: "192.0.2.1:3128", LastProbeTime: ago(time.Minute), UnhealthySince: ago(4 * time.Minute)}
	}
	for name, row := range map[string]struct {
		edits []func(*Proxy)
		want  Explanation
	}{
		"it works": {nil, Explanation{"Ready", "probes pass; it can be leased", ago(time.Hour), ""}},
		"it works and is being replaced": {[]func(*Proxy){func(p *Proxy) { p.Status.Replacing = "rotate" }},
			Explanation{"Ready", "probes pass; it can be leased", ago(time.Hour), "a fresh VM takes over: rotate"}},
		"a fresh VM serves, leases on the one before are live": {[]func(*Proxy){func(p *Proxy) {
			p.Status.Replacing, p.Status.Endpoint.Incarnation = "rotate", 2
			p.Status.Drain = &Drain{Incarnation: 1, Deadline: explainNow.Add(90 * time.Second)}
		}},
			Explanation{"Ready", "probes pass; it can be leased", ago(time.Hour), "the VM before, proxy-1, is deleted when its leases have ended, in 1m30s at the latest"}},
		"a fresh VM serves, the one before goes": {[]func(*Proxy){func(p *Proxy) { p.Status.Replacing, p.Status.Endpoint.Incarnation = "rotate", 2 }},
			Explanation{"Ready", "probes pass; it can be leased", ago(time.Hour), "the VM before, proxy-1, is deleted"}},
		"deletion asked for": {[]func(*Proxy){func(p *Proxy) { p.DeleteTime = ago(time.Second) }},
			Explanation{"Deleting", "its deletion was asked for", ago(time.Second), "the VM is deleted, then the document"}},
		"deletion asked for, leases live": {[]func(*Proxy){func(p *Proxy) {
			p.DeleteTime, p.Status.Drain = ago(time.Second), &Drain{Deadline: explainNow.Add(90500 * time.Millisecond)}
		}},
			Explanation{"Draining", "its deletion was asked for; live leases are waited for", ago(time.Second), "the VM is deleted when they have ended, in 1m31s at the latest"}},
		"deletion goes before all else": {[]func(*Proxy){sick, spec(func(s *Spec) { s.Paused = true }), func(p *Proxy) { p.DeleteTime, p.Broken = ago(0), Faults{{Path: "spec"}} }},
			Explanation{"Deleting", "its deletion was asked for", ago(0), "the VM is deleted, then the document"}},
		"the document does not decode": {[]func(*Proxy){func(p *Proxy) {
			p.Broken = Faults{{Path: "spec.a", Message: "unknown key"}, {Path: "spec.b", Message: "unknown key"}}
		}},
			Explanation{"Rejected", "spec.a: unknown key; spec.b: unknown key", time.Time{}, "mend the document; until then nothing is done with it"}},
		"the document breaks a rule": {[]func(*Proxy){func(p *Proxy) {
			p.Status.Conditions.Set(Condition{Type: ConditionAccepted, Message: "spec.mode: must not change"}, ago(time.Minute))
		}}, Explanation{"Rejected", "spec.mode: must not change", ago(time.Minute), "mend the document; until then nothing is done with it"}},
		"the document was accepted": {[]func(*Proxy){func(p *Proxy) {
			p.Status.Conditions.Set(Condition{Type: ConditionAccepted, Status: true}, ago(time.Minute))
		}},
			Explanation{"Ready", "probes pass; it can be leased", ago(time.Hour), ""}},
		"paused": {[]func(*Proxy){spec(func(s *Spec) { s.Paused = true })},
			Explanation{"Paused", "spec.paused is true: no new leases and no cloud calls, probes go on", time.Time{}, "resume it to lease it again"}},
		"refused for good": {[]func(*Proxy){func(p *Proxy) {
			p.Status.Phase, p.Status.Retry = PhaseFailed, &Retry{Class: "Permanent", Message: "no such machine type\nsee there"}
			p.Status.Conditions.Set(Condition{Type: ConditionProvisioned}, ago(time.Minute))
		}}, Explanation{"Failed", "the cloud refuses it for good: Permanent: no such machine type; see there", ago(time.Minute), "change what it refuses in the spec, or rotate to try once more"}},
		"refused for good, nobody knows why": {[]func(*Proxy){func(p *Proxy) { p.Status.Phase = PhaseFailed }},
			Explanation{"Failed", "the cloud refuses it for good", time.Time{}, "change what it refuses in the spec, or rotate to try once more"}},
		"never leased": {[]func(*Proxy){maxLeases(0)}, Explanation{"Disabled", "spec.maxLeases is 0: it is never leased", time.Time{}, "raise maxLeases to lease it"}},
		"new": {[]func(*Proxy){func(p *Proxy) { p.Status, p.CreateTime = Status{}, ago(time.Second) }},
			Explanation{"Pending", "the plane has not seen it yet", ago(time.Second), "the next run sees to it, within a minute"}},
		"its provider is unknown": {[]func(*Proxy){provisioned(`no provider "x" is configured`), func(p *Proxy) { p.Status.Instance = nil }},
			Explanation{"Pending", `no provider "x" is configured`, ago(2 * time.Minute), "the next run sees to it, within a minute"}},
		"a condition without message": {[]func(*Proxy){provisioned("")}, Explanation{"Provisioning", "Waiting", ago(2 * time.Minute), "its VM is waited for"}},
		"booting": {[]func(*Proxy){func(p *Proxy) { p.Status.Endpoint, p.CreateTime = nil, ago(time.Minute) }},
			Explanation{"Provisioning", "its VM proxy-1 is not up yet", ago(time.Minute), "its VM is waited for"}},
		"a condition without a word": {[]func(*Proxy){func(p *Proxy) {
			p.Status.Endpoint = nil
			p.Status.Conditions.Set(Condition{Type: ConditionProvisioned}, ago(time.Minute))
		}}, Explanation{"Provisioning", "its VM proxy-1 is not up yet", ago(time.Minute), "its VM is waited for"}},
		"out of stock": {[]func(*Proxy){provisioned("x"), func(p *Proxy) {
			p.Status.Retry = &Retry{Attempts: 2, Class: "QuotaExceeded", Reason: "StockOut", Message: "zone us-east1-b", NotBefore: explainNow.Add(time.Minute)}
		}}, Explanation{"Pending", "StockOut: zone us-east1-b", ago(2 * time.Minute), "attempt 3 in 1m"}},
		"out of stock, time is over": {[]func(*Proxy){provisioned("x"), func(p *Proxy) { p.Status.Retry = &Retry{Attempts: 2, Class: "Transient", NotBefore: ago(time.Minute)} }},
			Explanation{"Pending", "Transient", ago(2 * time.Minute), "attempt 3 in 0s"}},
		"not probed yet": {[]func(*Proxy){func(p *Proxy) { p.Status.Health = Health{} }},
			Explanation{"Pending", "it has not been probed yet", time.Time{}, "the next tick probes it, within a minute"}},
		"sick": {[]func(*Proxy){sick}, Explanation{"Unhealthy", "nothing listens at its address: 192.0.2.1:3128", ago(4 * time.Minute),
			"probed again every 1m; replaced when unhealthy for 10m, in 6m"}},
		"sick, never replaced": {[]func(*Proxy){sick, replaceUnhealthyAfter(0)},
			Explanation{"Unhealthy", "nothing listens at its address: 192.0.2.1:3128", ago(4 * time.Minute), "probed again every 1m"}},
		"External and sick": {[]func(*Proxy){sick, mode(External)},
			Explanation{"Unhealthy", "nothing listens at its address: 192.0.2.1:3128", ago(4 * time.Minute), "probed again every 1m"}},
		"External, seen by a run": {[]func(*Proxy){mode(External), func(p *Proxy) { p.Status.Endpoint = nil }},
			Explanation{"Ready", "probes pass; it can be leased", ago(time.Hour), ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, row.want, Explain(of(up(), row.edits...).Proxy, explainNow))
		})
	}
}

func TestEveryOutcomeHasItsOwnWords(t *testing.T) {
	t.Parallel()
	seen := map[string]Outcome{}
	for _, o := range []Outcome{
		"", OutcomeOK, OutcomeStatusMismatch, OutcomeBodyMismatch, OutcomeRedirect, OutcomeBlocked, OutcomeAuthFailed, OutcomeProxyError, OutcomeRefused,
		OutcomeDNS, OutcomeConnectTimeout, OutcomeTimeout, OutcomeReset, OutcomeTLS, OutcomeInconclusive,
	} {
		text := OutcomeText(o)
		assert.NotContains(t, seen, text, "%q", o)
		seen[text] = o
	}
}
