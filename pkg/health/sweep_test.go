package health

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func TestASweepRecordsTheVerdictAndTellsTheCatalogAtOnce(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	good, bad := w.proxy(), w.proxy()
	bad.be(broken)
	w.add("good", good)
	w.add("bad", bad)
	for minute := range 4 {
		require.NoError(t, w.sweep(minute, "good", "bad"))
	}

	p := w.get("good")
	assert.True(t, p.Status.Health.Healthy)
	assert.Equal(t, at(0), p.Status.Health.LastProbeTime)
	ready, _ := p.Status.Conditions.Get(fleet.ConditionReady)
	assert.True(t, ready.Status, ready.Message)
	healthy, _ := p.Status.Conditions.Get(fleet.ConditionHealthy)
	assert.Equal(t, fleet.Condition{Type: fleet.ConditionHealthy, Status: true, Reason: "ProbesPass", LastTransitionTime: at(0)}, healthy)
	assert.Equal(t, fleet.Verdict{Healthy: true, Outcome: fleet.OutcomeOK, Since: at(0)}, w.entry("good").Verdict)
	assert.Equal(t, good.host, w.entry("good").Host, "the rest of the entry stays")

	p = w.get("bad")
	assert.False(t, p.Status.Health.Healthy)
	assert.Equal(t, fleet.OutcomeStatusMismatch, p.Status.Health.Outcome)
	assert.EqualValues(t, 3, p.Status.Health.ConsecutiveFailures)
	assert.Equal(t, at(2), p.Status.Health.UnhealthySince)
	healthy, _ = p.Status.Conditions.Get(fleet.ConditionHealthy)
	assert.Equal(t, "StatusMismatch", healthy.Reason)
	assert.Contains(t, healthy.Message, "502")
	ready, _ = p.Status.Conditions.Get(fleet.ConditionReady)
	assert.False(t, ready.Status)

	assert.Len(t, w.log.with("verdict flipped"), 1, "one line per flip: %s", w.log)
	assert.EqualValues(t, 1, w.count("flips", "healthy"))
	assert.EqualValues(t, 4, w.count("probes", "ok"))

	good.be(broken)
	for minute := 4; minute < 7; minute++ {
		require.NoError(t, w.sweep(minute, "good"))
	}
	assert.Equal(t, fleet.Verdict{Outcome: fleet.OutcomeStatusMismatch, Since: at(6)}, w.entry("good").Verdict)
	assert.Len(t, w.log.with("verdict flipped"), 2)
}

func TestASteadySweepWritesNothingButHeartbeats(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	names := []string{"a", "b", "c", "down"}
	for _, n := range names {
		b := w.proxy()
		if n == "down" {
			b.be(broken)
		}
		w.add(n, b)
	}
	for minute := range 3 {
		require.NoError(t, w.sweep(minute, names...))
	}
	before := w.store.writes.Load()
	for minute := 3; minute < 5; minute++ {
		require.NoError(t, w.sweep(minute, names...))
	}
	assert.Equal(t, before, w.store.writes.Load())
	require.NoError(t, w.sweep(5, names...))
	assert.Equal(t, before+3, w.store.writes.Load(), "one heartbeat each, five minutes after the last record")
	require.NoError(t, w.sweep(7, names...))
	assert.Equal(t, before+4, w.store.writes.Load())
	assert.EqualValues(t, 3, w.store.verdicts.Load(), "the catalog hears of flips only")
}

func TestTheExitAddressIsRecorded(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.add("a", w.proxy(), func(_ *fleet.Proxy, spec map[string]any) {
		spec["healthCheck"].(map[string]any)["exitAddressFrom"] = "header"
	})
	require.NoError(t, w.sweep(0, "a"))
	assert.Equal(t, "192.0.2.7", w.get("a").Status.Health.ExitAddress)
}

func TestCredentialsReachTheProxyAndNothingElse(t *testing.T) {
	leaveNothing(t)
	w := newWorld(t)
	w.secrets["auth"] = "crawler:pl4nted-p:ss\n"
	w.secrets["odd"] = "pl4nted-without-a-colon"
	ask := func(secret string) func(*fleet.Proxy, map[string]any) {
		return func(_ *fleet.Proxy, spec map[string]any) {
			spec["endpoint"].(map[string]any)["credentialsSecretRef"] = map[string]any{"name": secret}
		}
	}
	b := w.proxy()
	seen := make(chan string, 1)
	b.be(func(c net.Conn) {
		var head recorder
		forward(head.tap(c))
		seen <- head.header().Get("Proxy-Authorization")
	})
	echo := w.proxy() // tells the credentials back wherever it can
	echo.be(func(c net.Conn) {
		auth := request(c).Header.Get("Proxy-Authorization")
		_, _ = fmt.Fprintf(c, "HTTP/1.1 502 %s\r\nX-Client-Address: %s\r\n\r\n%s", auth, auth, auth)
	})
	w.add("a", b, ask("auth"))
	w.add("echo", echo, ask("auth"))
	w.add("odd", w.proxy(), ask("odd"))
	w.add("absent", w.proxy(), ask("absent"))
	w.add("lost", w.proxy(), ask("unreachable"))
	w.add("lost-too", w.proxy(), ask("unreachable"))
	names := []string{"a", "echo", "odd", "absent", "lost", "lost-too"}
	require.NoError(t, w.sweep(0, names...))

	assert.Equal(t, "Basic Y3Jhd2xlcjpwbDRudGVkLXA6c3M=", <-seen)
	assert.True(t, w.get("a").Status.Health.Healthy)
	assert.Equal(t, fleet.OutcomeAuthFailed, w.get("odd").Status.Health.Outcome, "nobody could use such a secret")
	assert.Equal(t, fleet.OutcomeAuthFailed, w.get("absent").Status.Health.Outcome, "nor one that is not there")
	assert.Zero(t, w.get("lost").Status.Health, "an outage of the secrets says nothing about the proxy")
	assert.EqualValues(t, 2, w.count("probes", "inconclusive"))
	assert.Len(t, w.log.with("credentials cannot be resolved"), 1, "one line per secret and tick")
	everything := w.log.String()
	for _, n := range names {
		everything += fmt.Sprintf("%+v %+v", w.get(n), w.entry(n))
	}
	for _, planted := range []string{"pl4nted", "Y3Jhd2xlcjpwbDRudGVk"} {
		assert.False(t, strings.Contains(everything, planted), "%q in %s", planted, everything)
	}
}
