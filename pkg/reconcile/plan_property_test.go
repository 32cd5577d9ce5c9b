package reconcile

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// model is a cloud, a catalog and one document as plain values, begun in any state whatever.
type model struct {
	rng     *rand.Rand
	now     time.Time
	doc     fleet.Proxy
	exists  map[string]provider.Instance
	slots   []store.Slot
	entry   *fleet.Entry
	max     int
	others  int
	removed bool
	trail   []string
}

func (m *model) oneOf(n int) bool { return m.rng.IntN(n) == 0 }

// anyModel draws a state, possible or not.
func anyModel(rng *rand.Rand) *model {
	m := &model{rng: rng, now: start, doc: viewOf().Proxy, exists: map[string]provider.Instance{}, max: rng.IntN(4), others: rng.IntN(2)}
	s := &m.doc.Status
	m.doc.Spec.Lifecycle = nil
	if m.oneOf(4) {
		noStatusOf(&m.doc)
	} else {
		s.Instance, s.Next = m.anyRecord(), m.anyRecord()
		if s.Next != nil && s.Instance != nil && s.Next.Name == s.Instance.Name {
			s.Next = nil
		}
		for _, i := range []*fleet.Instance{s.Instance, s.Next} {
			if i != nil {
				s.Incarnation = max(s.Incarnation, i.Incarnation)
				if m.oneOf(2) {
					s.Endpoint = &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: i.Incarnation, Since: start}
				}
			}
		}
		if m.oneOf(2) {
			s.Replacing = "SpecChanged"
		}
		if m.oneOf(2) {
			s.Drain = &fleet.Drain{Reason: []string{"Deleted", "Duplicate", "SpecChanged"}[rng.IntN(3)], Since: start, Deadline: start.Add(m.anySpan()), Incarnation: rng.Int64N(5)}
		}
		if m.oneOf(3) {
			s.Retry = &fleet.Retry{Attempts: rng.Int32N(9), NotBefore: start.Add(m.anySpan()), Class: []string{"Transient", "QuotaExceeded"}[rng.IntN(2)], Reason: []string{"", reasonDelete, provider.ReasonNameConflict}[rng.IntN(3)]}
		}
	}
	for n := int64(1); n <= 5; n++ {
		if m.oneOf(3) {
			i := provider.Instance{Name: nameP(n), Zone: "r1-a", State: m.anyState(), Address: "192.0.2.1", Owner: testOwner, UID: uidP, Incarnation: n, SpecHash: m.anyHash(), CreateTime: start.Add(-m.anySpan())}
			if m.oneOf(12) {
				i.Owner = "somebody"
			}
			m.exists[i.Name] = i
		}
		if m.oneOf(3) {
			m.slots = append(m.slots, store.Slot{Proxy: "p", N: int(n), LeaseID: fmt.Sprint(n), Incarnation: rng.Int64N(6), ExpireTime: start.Add(m.anySpan())})
		}
	}
	for _, i := range []*fleet.Instance{s.Instance, s.Next} {
		served := s.Endpoint != nil && i != nil && s.Endpoint.Incarnation >= i.Incarnation
		// What was decided to go has had its time, and a successor that has never served has no leases.
		if i != nil && (i.Deleting || i == s.Next && !served) {
			m.slots = slices.DeleteFunc(m.slots, func(slot store.Slot) bool { return slot.Incarnation == i.Incarnation })
		}
	}
	m.slots = slices.DeleteFunc(m.slots, func(slot store.Slot) bool { // nor has one that has never been up
		return m.exists[nameP(slot.Incarnation)].State == provisioningState
	})
	if m.oneOf(2) {
		m.entry = &fleet.Entry{Incarnation: rng.Int64N(5), Gate: []fleet.Gate{fleet.GateOpen, fleet.GateDraining, fleet.GatePending}[rng.IntN(3)], NarrowTime: start.Add(-m.anySpan()), Capacity: rng.Int32N(8), Ceiling: rng.Int32N(8)}
	}
	if m.oneOf(3) {
		m.doc.DeleteTime = start
	}
	if m.oneOf(3) {
		m.doc.RotateTime = start.Add(-m.anySpan())
	}
	return m
}

func noStatusOf(p *fleet.Proxy) { p.Status = fleet.Status{} }

func (m *model) anySpan() time.Duration { return time.Duration(m.rng.IntN(40)-10) * time.Minute }

func (m *model) anyState() provider.State {
	return []provider.State{provisioningState, runningState, runningState, stoppingState, terminatedState, unknownState}[m.rng.IntN(6)]
}

func (m *model) anyHash() string {
	if m.oneOf(2) {
		return "older"
	}
	return fleet.SpecHash(m.doc.Spec)
}

func (m *model) anyRecord() *fleet.Instance {
	if m.oneOf(3) {
		return nil
	}
	n := 1 + m.rng.Int64N(4)
	i := &fleet.Instance{Name: nameP(n), Incarnation: n, Zone: "r1-a", SpecHash: m.anyHash(), IntentTime: start.Add(-m.anySpan()), Deleting: m.oneOf(4)}
	if !m.oneOf(3) {
		i.State, i.Address = string(m.anyState()), "192.0.2.1"
	}
	return i
}

func (m *model) view(facts map[string]Fact, slots *[]store.Slot) View {
	v := View{
		Now: m.now, Proxy: m.doc, UID: uidP, Owner: testOwner, Facts: facts, Slots: slots, Entry: m.entry, Jitter: 0.5,
		Cloud: Cloud{Known: true, Max: m.max, Others: m.others, MayReplace: true, Silent: map[string]bool{}, Cooling: map[string]time.Time{}},
	}
	for n := int64(1); n < 60; n++ {
		// Listings miss what they like of what the status names. What it does not name, nobody could know of.
		if i, ok := m.exists[nameP(n)]; ok && i.Owner == testOwner && !(names(m.doc.Status, i.Name) && m.oneOf(5)) {
			v.Listed = append(v.Listed, i)
		}
	}
	return v
}

// run is one run; it returns whether anything was decided.
func (m *model) run() (busy bool, err error) {
	facts := map[string]Fact{}
	var slots *[]store.Slot
	made := map[string]bool{}
	for round := 0; ; round++ {
		if round == 40 {
			return true, fmt.Errorf("no end of a run")
		}
		v := m.view(facts, slots)
		d := Plan(v)
		m.trail = append(m.trail, fmt.Sprintf("%s %s %v asks %v drain %+v entry %+v", m.now.Sub(start), d.Row, actions(d), d.Ask, d.Status.Drain, m.entry))
		if !d.Ask.Empty() {
			m.answer(d.Ask, facts, &slots)
			continue
		}
		busy = busy || d.Changed(v) || len(d.Actions) > 0
		m.doc.Status = d.Status
		for name, f := range facts {
			f.CreateErr, f.DeleteErr, f.Failure = nil, nil, nil
			facts[name] = f
		}
		creates := 0
		for _, a := range d.Actions {
			switch a.Verb {
			case Create:
				creates++
				err = m.create(a.Create, facts, made)
			case Delete:
				err = m.delete(a.Ref.Name, d.Status.Drain, facts)
			case Remove:
				m.removed = true
			}
			if err != nil {
				return busy, err
			}
		}
		if creates > 1 {
			return busy, fmt.Errorf("%d creates in one decision", creates)
		}
		if len(d.Actions) == 0 || m.removed {
			return busy, nil
		}
	}
}

func (m *model) answer(a Ask, facts map[string]Fact, slots **[]store.Slot) {
	for _, ref := range a.Get {
		if i, ok := m.exists[ref.Name]; ok {
			facts[ref.Name] = Fact{Seen: &i}
		} else {
			facts[ref.Name] = Fact{Absent: true}
		}
	}
	if a.Slots {
		s := m.slots
		*slots = &s
	}
}

func (m *model) create(req provider.CreateRequest, facts map[string]Fact, made map[string]bool) error {
	if !names(m.doc.Status, req.Name) {
		return fmt.Errorf("create of %s without an intent", req.Name)
	}
	if made[req.Name] {
		return fmt.Errorf("%s is created twice in one run", req.Name)
	}
	made[req.Name] = true
	if i, ok := m.exists[req.Name]; ok {
		if i.Owner != testOwner || i.SpecHash != req.SpecHash {
			facts[req.Name] = Fact{CreateErr: errTaken}
			return nil
		}
		facts[req.Name] = Fact{Seen: &i}
		return nil
	}
	held, alive := 0, 0
	for _, i := range m.exists {
		if i.Owner == testOwner {
			held++
			if isAlive(i) {
				alive++
			}
		}
	}
	if m.max > 0 && m.others+held+1 > m.max {
		return fmt.Errorf("%d others, %d of its own and one more: %d are allowed", m.others, held, m.max)
	}
	if alive >= 2 {
		return fmt.Errorf("a third instance is created")
	}
	i := provider.Instance{Name: req.Name, Zone: req.Zone, State: provisioningState, Owner: req.Owner, UID: req.UID, Incarnation: req.Incarnation, SpecHash: req.SpecHash, CreateTime: m.now}
	m.exists[req.Name] = i
	facts[req.Name] = Fact{Seen: &i}
	return nil
}

func (m *model) delete(name string, d *fleet.Drain, facts map[string]Fact) error {
	f := facts[name]
	f.Deleted = true
	facts[name] = f
	i, ok := m.exists[name]
	if !ok {
		return nil
	}
	if i.Owner != testOwner {
		return fmt.Errorf("%s is somebody else's and deleted", name)
	}
	for _, s := range m.slots {
		overdue := d != nil && (d.Incarnation == 0 || d.Incarnation == i.Incarnation) && !m.now.Before(d.Deadline)
		if i.State == runningState && s.Incarnation == i.Incarnation && m.now.Before(s.ExpireTime) && !overdue {
			return fmt.Errorf("%s is deleted under a lease until %s, drain %+v", name, s.ExpireTime.Sub(start), d)
		}
	}
	i.State = stoppingState
	m.exists[name] = i
	return nil
}

// pass lets time go by: instances move on, probes pass, the catalog is published.
func (m *model) pass() {
	old := m.entry
	slots := m.slots
	e := entryOf(m.doc, "", old, &slots, m.now)
	m.entry = &e
	m.now = m.now.Add(time.Duration(1+m.rng.IntN(8)) * time.Minute)
	for name, i := range m.exists {
		switch i.State {
		case provisioningState, unknownState:
			i.State, i.Address = runningState, "192.0.2.1"
		case stoppingState:
			delete(m.exists, name)
			continue
		}
		m.exists[name] = i
	}
	s := &m.doc.Status
	if s.Endpoint != nil {
		s.Health = fleet.Health{Incarnation: s.Endpoint.Incarnation, Healthy: true}
	}
	if s.Next != nil && s.Next.Address != "" {
		s.NextHealth = fleet.Health{Incarnation: s.Next.Incarnation, Healthy: true}
	}
}

// rests checks that what is left is what there should be.
func (m *model) rests() error {
	ours := 0
	for name, i := range m.exists {
		if i.Owner != testOwner {
			continue
		}
		ours++
		if m.removed || !names(m.doc.Status, name) {
			return fmt.Errorf("%s (%s) is left over", name, i.State)
		}
	}
	if m.removed != !m.doc.DeleteTime.IsZero() {
		return fmt.Errorf("removed is %v", m.removed)
	}
	if r := m.doc.Status.Retry; r != nil && r.Class == classPermanent {
		return nil // somebody else has its name, and that is said
	}
	if hasRoom := m.max == 0 || m.others < m.max; !m.removed && hasRoom && (ours != 1 || m.doc.Status.Endpoint == nil || m.doc.Status.Next != nil) {
		return fmt.Errorf("%d instances, status %+v", ours, m.doc.Status)
	}
	return nil
}

var propertySeeds = flag.Int("plan.seeds", 2000, "from how many states the property test of Plan sets out")

// TestPlanFromAnyStateComesToRestAndBreaksNothing draws states, possible or not, and runs until nothing
// is left to do.
func TestPlanFromAnyStateComesToRestAndBreaksNothing(t *testing.T) {
	t.Parallel()
	seeds := *propertySeeds / slower
	if testing.Short() {
		seeds = min(seeds, 400)
	}
	longest := 0
	for seed := range uint64(seeds) {
		m := anyModel(rand.New(rand.NewPCG(seed, 2)))
		first := fmt.Sprintf("%+v %v", m.doc.Status, m.exists)
		quiet, runs := 0, 0
		for ; (quiet < 6 || m.now.Sub(start) < time.Hour) && !m.removed; runs++ { // leases and back-offs last up to half an hour
			require.Less(t, runs, 80, "seed %d does not come to rest: %s\n%v", seed, first, m.trail[max(0, len(m.trail)-20):])
			busy, err := m.run()
			require.NoError(t, err, "seed %d from %s\n%v", seed, first, m.trail)
			m.pass()
			if quiet++; busy {
				quiet = 0
			}
		}
		longest = max(longest, runs)
		for range 2 { // what was asked to go last may take a moment
			m.pass()
		}
		require.NoError(t, m.rests(), "seed %d from %s\n%v", seed, first, m.trail)
	}
	t.Logf("%d states came to rest, the longest in %d runs", seeds, longest)
}
