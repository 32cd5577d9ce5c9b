package mock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/provider"
)

func TestLifeIsAFunctionOfTheClock(t *testing.T) {
	t.Parallel()
	delays := Settings{ProvisionDelay: 10 * time.Second, StopDelay: 5 * time.Second, PurgeDelay: 3 * time.Second}
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	const gone = provider.State("")
	made := provider.Instance{CreateTime: begin}
	failure := &provider.Error{Class: provider.ErrQuotaExceeded}
	for _, row := range []struct {
		promise string
		is      instance
		delays  Settings
		states  map[float64]provider.State // by seconds since it was made
	}{
		{"runs after the provision delay, and on", instance{Instance: made}, delays, map[float64]provider.State{
			0: provider.StateProvisioning, 9.999: provider.StateProvisioning, 10: provider.StateRunning, 1e6: provider.StateRunning}},
		{"stops, is terminated, is purged", instance{Instance: made, stopped: at(20), deleted: at(20)}, delays, map[float64]provider.State{
			20: provider.StateStopping, 24.999: provider.StateStopping, 25: provider.StateTerminated, 27.999: provider.StateTerminated, 28: gone, 1e6: gone}},
		{"stopped while it boots, never runs", instance{Instance: made, stopped: at(2), deleted: at(2)}, delays, map[float64]provider.State{
			2: provider.StateStopping, 7: provider.StateTerminated, 10: gone}},
		{"stopped from outside, stays terminated", instance{Instance: made, stopped: at(20)}, delays, map[float64]provider.State{
			24: provider.StateStopping, 25: provider.StateTerminated, 1e6: provider.StateTerminated}},
		{"deleted long after it stopped, is purged from then", instance{Instance: made, stopped: at(20), deleted: at(100)}, delays, map[float64]provider.State{
			102.999: provider.StateTerminated, 103: gone}},
		{"deleted while it stops, is purged once stopped", instance{Instance: made, stopped: at(20), deleted: at(24)}, delays, map[float64]provider.State{
			24: provider.StateStopping, 25: provider.StateTerminated, 28: gone}},
		{"a failed launch is gone when it should have booted", instance{Instance: made, failure: failure}, delays, map[float64]provider.State{
			9.999: provider.StateProvisioning, 10: gone}},
		{"without delays it runs at once", instance{Instance: made}, Settings{}, map[float64]provider.State{0: provider.StateRunning}},
		{"without delays it goes at once", instance{Instance: made, stopped: at(1), deleted: at(1)}, Settings{}, map[float64]provider.State{1: gone}},
		{"a clock that goes back takes the state back", instance{Instance: made}, delays, map[float64]provider.State{-1: provider.StateProvisioning}},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			for seconds, want := range row.states {
				state, exists := row.is.stateAt(at(seconds), row.delays)
				assert.Equal(t, want != gone, exists, "after %v s", seconds)
				if exists {
					assert.Equal(t, want, state, "after %v s", seconds)
				}
			}
		})
	}
}
