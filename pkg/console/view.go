package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Snapshot is what the store holds at one moment.
type Snapshot struct {
	Proxies []fleet.Proxy
	Shards  []store.Shard
	Slots   []store.Slot
	Run     store.Run
	// Partial says that there were more slots than were read; counts of leases are lower bounds then.
	Partial bool
	Probes  history // of this instance, while somebody looks
}

// view is what the page shows.
type view struct {
	Version  string
	Fleet    string // project and database
	Now      time.Time
	Tiles    []tile
	Live     int
	Capacity int
	Partial  bool
	Alerts   []string
	Rows     []row
	Total    int
	Filter   string
	Events   []event
	Refusals []refusal
	LastRun  time.Time
	Detail   *detail
	NotFound string // name that was asked for and is not there
}

type tile struct {
	State string
	Count int
}

type row struct {
	Name     string
	State    string
	Why      string
	Next     string
	Since    time.Time
	Outcome  fleet.Outcome
	Latency  int64
	Probed   time.Time
	Spark    *spark
	Live     int
	Capacity int32
	Max      int32
	Region   string
	Mode     fleet.Mode
	Labels   []string
	Born     time.Time
}

type event struct {
	fleet.Event
	Proxy string
}

type refusal struct {
	Reason string
	Count  int
}

type detail struct {
	row
	Conditions []fleet.Condition
	Events     []fleet.Event
	Instance   *fleet.Instance
	Successor  *fleet.Instance
	Exit       string
}

// eventsShown is how many recent events the page lists.
const eventsShown = 20

// runOverdue is after how long without a finished run something is wrong: the tick is a minute.
const runOverdue = 5 * time.Minute

// stateOrder lists states as a reader wants them: what needs hands first.
var stateOrder = []string{"Rejected", "Failed", "Unhealthy", "Pending", "Provisioning", "Draining", "Deleting", "Paused", "Disabled", "Ready"}

// build is pure: the page for one snapshot. filter is a state or empty, name a proxy or empty.
func build(s Snapshot, refusals map[string]int, filter, name string, now time.Time) view {
	v := view{Now: now, Filter: filter, Total: len(s.Proxies), LastRun: s.Run.EndTime, Partial: s.Partial}
	entries := map[string]fleet.Entry{}
	for _, shard := range s.Shards {
		for n, e := range shard.Entries {
			entries[n] = e
		}
	}
	live := map[string]int{}
	for _, slot := range s.Slots {
		if slot.ExpireTime.After(now) {
			live[slot.Proxy]++
			v.Live++
		}
	}
	counts := map[string]int{}
	for _, p := range s.Proxies {
		r := rowOf(p, entries[p.Name], live[p.Name], now)
		r.Spark = sparkOf(s.Probes[p.Name])
		counts[r.State]++
		if r.State == "Ready" {
			v.Capacity += int(r.Capacity)
		}
		if filter == "" || filter == r.State {
			v.Rows = append(v.Rows, r)
		}
		if name == p.Name {
			v.Detail = detailOf(p, r)
		}
		for _, e := range p.Status.Events {
			v.Events = append(v.Events, event{Event: e, Proxy: p.Name})
		}
	}
	if name != "" && v.Detail == nil {
		v.NotFound = name
	}
	v.Tiles = tiles(counts)
	v.Alerts = alerts(s, now)
	v.Refusals = sortRefusals(refusals)
	sortRows(v.Rows)
	slices.SortStableFunc(v.Events, func(a, b event) int { return b.Time.Compare(a.Time) })
	v.Events = v.Events[:min(len(v.Events), eventsShown)]
	return v
}

func rowOf(p fleet.Proxy, e fleet.Entry, live int, now time.Time) row {
	x := fleet.Explain(p, now)
	r := row{
		Name: p.Name, State: x.State, Why: x.Why, Next: x.Next, Since: x.Since,
		Outcome: p.Status.Health.Outcome, Latency: p.Status.Health.LatencyMs, Probed: p.Status.Health.LastProbeTime,
		Live: live, Capacity: e.Capacity, Max: p.Spec.MaxLeasesOrDefault(), Mode: p.Spec.Mode, Region: e.Region, Born: p.CreateTime,
	}
	if i := p.Status.Instance; i != nil && !i.CreateTime.IsZero() {
		r.Born = i.CreateTime
	}
	for k, val := range p.Labels {
		r.Labels = append(r.Labels, k+"="+val)
	}
	slices.Sort(r.Labels)
	return r
}

func detailOf(p fleet.Proxy, r row) *detail {
	d := &detail{row: r, Conditions: p.Status.Conditions, Instance: p.Status.Instance, Successor: p.Status.Next, Exit: p.Status.Health.ExitAddress}
	d.Events = slices.Clone(p.Status.Events)
	slices.Reverse(d.Events)
	return d
}

func tiles(counts map[string]int) []tile {
	var out []tile
	for _, state := range slices.Backward(stateOrder) {
		if counts[state] > 0 || state == "Ready" {
			out = append(out, tile{state, counts[state]})
		}
	}
	return out
}

func sortRows(rows []row) {
	rank := func(r row) int { return slices.Index(stateOrder, r.State) }
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
}

func sortRefusals(counts map[string]int) []refusal {
	var out []refusal
	for reason, n := range counts {
		if n > 0 {
			out = append(out, refusal{reason, n})
		}
	}
	slices.SortFunc(out, func(a, b refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// alerts are what concerns the fleet as a whole.
func alerts(s Snapshot, now time.Time) []string {
	var out []string
	switch {
	case s.Run.EndTime.IsZero():
		out = append(out, "No run has finished yet. Does the scheduler call the reconcile function?")
	case now.Sub(s.Run.EndTime) > runOverdue:
		out = append(out, fmt.Sprintf("The last run finished %s ago. Does the scheduler call the reconcile function?", span(now.Sub(s.Run.EndTime))))
	}
	var summary struct { // what reconcile writes, as much of it as the page says
		Orphans       int      `json:"orphans"`
		OrphansFrozen bool     `json:"orphansFrozen"`
		MeltDown      []string `json:"meltDown"`
	}
	if len(s.Run.Summary) > 0 && json.Unmarshal(s.Run.Summary, &summary) == nil {
		if summary.OrphansFrozen {
			out = append(out, fmt.Sprintf("%d VMs have no document, too many at once to be deleted unasked.", summary.Orphans))
		}
		for _, provider := range summary.MeltDown {
			out = append(out, fmt.Sprintf("So many proxies of %s are unhealthy at once that none is replaced for it: look at the target or the network.", provider))
		}
	}
	return out
}

// span writes a duration as people say it: 42s, 7m, 3h, 5d.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
