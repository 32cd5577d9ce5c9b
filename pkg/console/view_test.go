package console

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/reconcile"
	"crawl.example.com/proxyfleet/pkg/store"
)

// external is a proxy in the given state.
func external(name string, change func(*fleet.Proxy)) fleet.Proxy {
	p := fleet.Proxy{Name: name, CreateTime: now.Add(-time.Hour), Spec: fleet.Spec{Mode: fleet.External}}
	p.Status = fleet.Status{UID: "u", Health: fleet.Health{Healthy: true, Outcome: fleet.OutcomeOK, LatencyMs: 7, LastProbeTime: now}}
	if change != nil {
		change(&p)
	}
	return p
}

func names(rows []row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
}

func TestRowsAreInTheOrderOfNeed(t *testing.T) {
	t.Parallel()
	none := int32(0)
	s := Snapshot{Proxies: []fleet.Proxy{
		external("b-ready", nil), external("a-ready", nil),
		external("unhealthy", func(p *fleet.Proxy) {
			p.Status.Health = fleet.Health{Outcome: fleet.OutcomeDNS, LastProbeTime: now}
		}),
		external("pending", func(p *fleet.Proxy) { p.Status = fleet.Status{} }),
		external("deleting", func(p *fleet.Proxy) { p.DeleteTime = now }),
		external("draining", func(p *fleet.Proxy) { p.DeleteTime, p.Status.Drain = now, &fleet.Drain{Deadline: now} }),
		external("paused", func(p *fleet.Proxy) { p.Spec.Paused = true }),
		external("disabled", func(p *fleet.Proxy) { p.Spec.MaxLeases = &none }),
		external("failed", func(p *fleet.Proxy) { p.Status.Phase = fleet.PhaseFailed }),
		external("rejected", func(p *fleet.Proxy) { p.Broken = fleet.Faults{{Path: "spec.mode", Message: "must be there"}} }),
		external("provisioning", func(p *fleet.Proxy) {
			p.Spec.Mode, p.Status.Instance = fleet.Managed, &fleet.Instance{Name: "vm", CreateTime: now.Add(-time.Minute)}
		}),
	}}
	v := build(s, nil, "", "", now)
	require.Equal(t, []string{"rejected", "failed", "unhealthy", "pending", "provisioning", "draining", "deleting", "paused", "disabled", "a-ready", "b-ready"}, names(v.Rows))
	require.Equal(t, tile{"Ready", 2}, v.Tiles[0])
	require.Len(t, v.Tiles, 10)
	require.Equal(t, 11, v.Total)
	for _, r := range v.Rows {
		assert.NotEmpty(t, r.Why, "%s says why", r.Name)
		assert.Contains(t, stateOrder, r.State, "a state that the page does not know")
	}
	require.Equal(t, now.Add(-time.Minute), v.Rows[4].Born, "the age of a VM is the VM's")
	require.Equal(t, []string{"unhealthy"}, names(build(s, nil, "Unhealthy", "", now).Rows))
	require.Len(t, build(s, nil, "Unhealthy", "", now).Tiles, 10, "a filter leaves the sums alone")
}

func TestLeasesAreCountedWhileTheyLive(t *testing.T) {
	t.Parallel()
	s := Snapshot{
		Proxies: []fleet.Proxy{external("a", nil), external("sick", func(p *fleet.Proxy) {
			p.Status.Health = fleet.Health{Outcome: fleet.OutcomeDNS, LastProbeTime: now}
		})},
		Shards: []store.Shard{{Entries: map[string]fleet.Entry{"a": {Capacity: 3, Region: "r"}}}, {Entries: map[string]fleet.Entry{"sick": {Capacity: 9}}}},
		Slots: []store.Slot{
			{Proxy: "a", ExpireTime: now.Add(time.Second)}, {Proxy: "a", N: 1, ExpireTime: now}, {Proxy: "sick", ExpireTime: now.Add(time.Hour)},
			{Proxy: "gone", ExpireTime: now.Add(time.Hour)},
		},
		Partial: true,
	}
	v := build(s, nil, "", "", now)
	require.Equal(t, 3, v.Live)
	require.Equal(t, 3, v.Capacity, "of what is Ready")
	require.True(t, v.Partial)
	require.Equal(t, []int{1, 1}, []int{v.Rows[0].Live, v.Rows[1].Live})
	require.Equal(t, "r", v.Rows[1].Region)
	require.EqualValues(t, 3, v.Rows[1].Capacity)
}

// summary is what a run leaves behind.
func summary(t *testing.T, s reconcile.Summary) []byte {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	return data
}

func TestAlertsConcernTheFleet(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		run  store.Run
		want []string
	}{
		"no run yet":        {store.Run{}, []string{"No run has finished yet. Does the scheduler call the reconcile function?"}},
		"runs go on":        {store.Run{EndTime: now.Add(-runOverdue)}, nil},
		"runs have stopped": {store.Run{EndTime: now.Add(-runOverdue - time.Second)}, []string{"The last run finished 5m ago. Does the scheduler call the reconcile function?"}},
		"orphans":           {store.Run{EndTime: now, Summary: summary(t, reconcile.Summary{Orphans: 4, OrphansFrozen: true})}, []string{"4 VMs have no document, too many at once to be deleted unasked."}},
		"a meltdown": {store.Run{EndTime: now, Summary: summary(t, reconcile.Summary{MeltDown: []string{"gce"}})},
			[]string{"So many proxies of gce are unhealthy at once that none is replaced for it: look at the target or the network."}},
		"some orphans":                 {store.Run{EndTime: now, Summary: summary(t, reconcile.Summary{Orphans: 4})}, nil},
		"a summary of another version": {store.Run{EndTime: now, Summary: []byte(`{"orphansFrozen":"many"}`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, build(Snapshot{Run: row.run}, nil, "", "", now).Alerts)
		})
	}
}

func TestEventsAreTheNewestOfAll(t *testing.T) {
	t.Parallel()
	var s Snapshot
	for _, name := range []string{"a", "b", "c"} {
		s.Proxies = append(s.Proxies, external(name, func(p *fleet.Proxy) {
			for i := range 10 {
				p.Status.Events = append(p.Status.Events, fleet.Event{Time: now.Add(time.Duration(i) * time.Minute), Reason: name})
			}
		}))
	}
	v := build(s, nil, "", "b", now)
	require.Len(t, v.Events, eventsShown)
	for i := range v.Events[1:] {
		require.False(t, v.Events[i].Time.Before(v.Events[i+1].Time))
	}
	require.Len(t, v.Detail.Events, 10)
	require.True(t, v.Detail.Events[0].Time.After(v.Detail.Events[9].Time), "newest first")
}

func TestRefusalsAreInOrder(t *testing.T) {
	t.Parallel()
	v := build(Snapshot{}, map[string]int{"B": 2, "A": 2, "C": 5, "NONE": 0}, "", "", now)
	require.Equal(t, []refusal{{"C", 5}, {"A", 2}, {"B", 2}}, v.Refusals)
}

func TestSpansAreShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m", time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d",
	} {
		require.Equal(t, want, span(d))
	}
}
