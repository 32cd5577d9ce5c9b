package health

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEachProxyIsDueOncePerInterval(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{60 * time.Second, 2 * time.Minute, 5 * time.Minute, 7 * time.Minute, time.Hour} {
		for i := range 50 {
			name := fmt.Sprintf("proxy-%d", i)
			minutes := int(interval / time.Minute)
			last, count := -1, 0
			for m := range 4 * minutes {
				late := time.Duration((i+m*37)%60) * time.Second // the scheduler is never quite on time
				if !Due(name, interval, at(m).Add(late)) {
					continue
				}
				if last >= 0 {
					assert.Equal(t, minutes, m-last, "%s every %s", name, interval)
				}
				last = m
				count++
			}
			assert.Equal(t, 4, count, "%s every %s", name, interval)
		}
	}
}

func TestAnIntervalBetweenMinutesIsKeptOnAverage(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		count := 0
		for m := range 90 {
			if Due(fmt.Sprintf("proxy-%d", i), 90*time.Second, at(m)) {
				count++
			}
		}
		assert.Equal(t, 60, count)
	}
}

func TestDueProxiesAreSpreadEvenlyOverMinutes(t *testing.T) {
	t.Parallel()
	const fleet, minutes = 5000, 5
	for _, pattern := range []string{"us-east1-%d", "%d", "p%05d", "%dabcdefgh", "proxy-%d-b"} {
		perMinute := make([]int, minutes)
		for i := range fleet {
			for m := range minutes {
				if Due(fmt.Sprintf(pattern, i), minutes*time.Minute, at(m)) {
					perMinute[m]++
				}
			}
		}
		for m, n := range perMinute {
			assert.InDelta(t, fleet/minutes, n, fleet/minutes*0.15, "minute %d of %v", m, perMinute)
		}
	}
}
