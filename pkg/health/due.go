package health

import (
	"hash/fnv"
	"time"
)

// Period is how often reconcile runs, and the grain of the schedule.
const Period = time.Minute

// Due reports whether the Proxy name is to be probed in the run of the given tick, so that each is
// probed once per interval and, whatever their number, every minute has its even share of them. It
// needs no memory: a Proxy's place within the interval is a hash of its name. Seconds of tick do
// not count; a plane that runs more often than once a Period probes as often as it runs within the
// Proxy's minute. An interval of at most a Period is always due.
func Due(name string, interval time.Duration, tick time.Time) bool {
	seconds := int64(interval / time.Second)
	period := int64(Period / time.Second)
	if seconds <= period {
		return true
	}
	minute := tick.Unix() - tick.Unix()%period
	return (minute+place(name, seconds))%seconds < period
}

// place spreads names over the seconds of an interval.
func place(name string, seconds int64) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return int64(h.Sum64() % uint64(seconds)) //nolint:gosec // below seconds
}
