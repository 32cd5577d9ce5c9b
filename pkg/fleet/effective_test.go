package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhereAProxyIsReached(t *testing.T) {
	t.Parallel()
	assert.EqualValues(t, 3128, managed().EffectivePort(), "the default port")
	assert.EqualValues(t, 8080, of(managed(), port(8080)).EffectivePort())
	assert.Equal(t, "proxy.example.net", external().EffectiveHost(), "External: the spec's host")
	p := managed()
	assert.Empty(t, p.EffectiveHost(), "Managed: none before an address was observed")
	p.Status.Endpoint = &StatusEndpoint{Host: "192.0.2.1"}
	assert.Equal(t, "192.0.2.1", p.EffectiveHost(), "Managed: the observed address")
	p.Spec.Endpoint.Host = "proxy.example.net"
	assert.Equal(t, "192.0.2.1", p.EffectiveHost(), "Managed: the observed address, whatever the spec says")
}

func TestHealthCheckDefaultsApplyFieldByField(t *testing.T) {
	t.Parallel()
	defaults := HealthCheck{
		URL: "https://www.gstatic.com/generate_204", ExpectedStatus: 204, IntervalSeconds: 60, TimeoutSeconds: 10,
		HealthyThreshold: 1, UnhealthyThreshold: 3, OnBlocked: "Unhealthy", ExitAddressHeader: "X-Client-Address",
	}
	assert.Equal(t, defaults, Spec{}.HealthCheckOrDefault(), "the whole block left out")
	assert.Equal(t, defaults, Spec{HealthCheck: &HealthCheck{}}.HealthCheckOrDefault(), "an empty block")
	assert.Equal(t, *whole().HealthCheck, whole().HealthCheckOrDefault(), "what is set stays")

	own := Spec{HealthCheck: &HealthCheck{URL: "https://www.example.com/"}}
	assert.Zero(t, own.HealthCheckOrDefault().ExpectedStatus, "another URL: any 2xx")
	assert.Zero(t, own.HealthCheck.IntervalSeconds, "the spec itself is left as it is")
	status := Spec{HealthCheck: &HealthCheck{ExpectedStatus: 200}}.HealthCheckOrDefault()
	assert.EqualValues(t, 200, status.ExpectedStatus, "the default URL with a status of its own")
}

func TestLifecycleDefaultsApplyFieldByField(t *testing.T) {
	t.Parallel()
	read := func(l Lifecycle) [4]time.Duration {
		return [4]time.Duration{time.Duration(*l.ProvisionTimeout), time.Duration(*l.ReplaceUnhealthyAfter), time.Duration(*l.MaxAge), time.Duration(*l.DrainTimeout)}
	}
	ten := 10 * time.Minute
	assert.Equal(t, [4]time.Duration{ten, ten, 0, ten}, read(Spec{}.LifecycleOrDefault()))
	zero := Duration(0)
	s := Spec{Lifecycle: &Lifecycle{DrainTimeout: &zero, ReplaceUnhealthyAfter: &zero}}
	assert.Equal(t, [4]time.Duration{ten, 0, 0, 0}, read(s.LifecycleOrDefault()), "an explicit 0 stays")
	assert.Nil(t, s.Lifecycle.MaxAge, "the spec itself is left as it is")
}

func TestZonesAreTriedInOrderAndOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		placement *Placement
		want      []string
	}{
		"no placement":            {nil, nil},
		"none named":              {&Placement{Region: "r"}, nil},
		"one":                     {&Placement{Zone: "a"}, []string{"a"}},
		"the list":                {&Placement{Zones: []string{"b", "a"}}, []string{"b", "a"}},
		"the preferred one first": {&Placement{Zone: "b", Zones: []string{"a", "b", "c", "a", ""}}, []string{"b", "a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, row.want, Spec{Placement: row.placement}.ZonesInOrder())
		})
	}
}

func TestDurationsReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s", day: "24h", 10 * time.Second: "10s",
		time.Hour + 20*time.Second: "1h0m20s", -10 * time.Minute: "-10m", 1500 * time.Millisecond: "1.5s", 20 * time.Hour: "20h", 100 * time.Hour: "100h",
	} {
		assert.Equal(t, want, Duration(d).String())
		data, err := Duration(d).MarshalJSON()
		require.NoError(t, err)
		var back Duration
		require.NoError(t, back.UnmarshalJSON(data))
		assert.Equal(t, d, time.Duration(back))
	}
	var d Duration
	require.NoError(t, d.UnmarshalJSON([]byte("0")))
	for _, bad := range []string{"600", `"soon"`, "true", "{}", `"`} {
		assert.Error(t, d.UnmarshalJSON([]byte(bad)), bad)
	}
}

func TestAnEntryIsReadyOnAVerdictOfItsOwnIncarnation(t *testing.T) {
	t.Parallel()
	ready := Entry{Host: "192.0.2.1", Incarnation: 2, Verdict: Verdict{Healthy: true, Incarnation: 2}}
	assert.True(t, ready.Ready())
	for name, change := range map[string]func(*Entry){
		"gated":           func(e *Entry) { e.Gate = GatePaused },
		"without address": func(e *Entry) { e.Host = "" },
		"unhealthy":       func(e *Entry) { e.Verdict.Healthy = false },
		"stale verdict":   func(e *Entry) { e.Verdict.Incarnation = 1 },
	} {
		e := ready
		change(&e)
		assert.False(t, e.Ready(), name)
	}
}
