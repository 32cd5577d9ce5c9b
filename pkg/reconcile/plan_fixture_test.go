package reconcile

import (
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

const uidP = "uid-of-p"

// given is one change of a View.
type given func(*View)

// viewOf is a valid Managed Proxy of which nothing else is known, changed step by step.
func viewOf(steps ...given) View {
	s, faults := fleet.Decode(spec(nil))
	if len(faults) > 0 {
		panic(faults)
	}
	v := View{
		Now: start, UID: uidP, Owner: testOwner, Facts: map[string]Fact{}, Jitter: 0.5,
		Proxy: fleet.Proxy{Name: "p", Spec: s, CreateTime: start.Add(-time.Hour), UpdateTime: start.Add(-time.Minute)},
		Cloud: Cloud{Known: true, MayReplace: true, Silent: map[string]bool{}, Cooling: map[string]time.Time{}},
	}
	v.Proxy.Status.UID = uidP
	v.Proxy.Status.Accepted = &fleet.Accepted{Mode: fleet.Managed, Provider: "main"}
	for _, step := range steps {
		step(&v)
	}
	return v
}

func nameP(n int64) string { return provider.InstanceName(uidP, n) }

// record is an instance as the status has it: asked for an hour ago.
func record(v *View, n int64, state provider.State) *fleet.Instance {
	v.Proxy.Status.Incarnation = max(v.Proxy.Status.Incarnation, n)
	i := &fleet.Instance{
		Name: nameP(n), Incarnation: n, Zone: "r1-a", State: string(state), SpecHash: fleet.SpecHash(v.Proxy.Spec),
		IntentTime: start.Add(-time.Hour),
	}
	if state != "" {
		i.CreateTime = start.Add(-time.Hour)
	}
	if state == provider.StateRunning {
		i.Address = "192.0.2.1"
	}
	return i
}

func instance(n int64, state provider.State) given {
	return func(v *View) { v.Proxy.Status.Instance = record(v, n, state) }
}

func successor(n int64, state provider.State) given {
	return func(v *View) {
		v.Proxy.Status.Next, v.Proxy.Status.Replacing = record(v, n, state), string(ReasonRotate)
	}
}

// real is an instance as the cloud shows it.
func real(v *View, n int64, state provider.State) provider.Instance {
	i := provider.Instance{
		Name: nameP(n), Zone: "r1-a", State: state, Owner: testOwner, UID: uidP, Incarnation: n,
		SpecHash: fleet.SpecHash(v.Proxy.Spec), CreateTime: start.Add(-time.Hour),
	}
	if state == provider.StateRunning {
		i.Address = "192.0.2.1"
	}
	return i
}

func listed(n int64, state provider.State) given {
	return func(v *View) { v.Listed = append(v.Listed, real(v, n, state)) }
}

func found(n int64, state provider.State) given {
	return func(v *View) {
		i := real(v, n, state)
		v.Facts[i.Name] = Fact{Seen: &i}
	}
}

func fact(n int64, f Fact) given { return func(v *View) { v.Facts[nameP(n)] = f } }

func gone(n int64) given { return fact(n, Fact{Absent: true}) }

func failedLaunch(n int64, e provider.Error) given { return fact(n, Fact{Absent: true, Failure: &e}) }

func answered(n int64, err error) given { return fact(n, Fact{CreateErr: err}) }

// serving is a healthy instance that leases go to.
func serving(n int64) given {
	return func(v *View) {
		instance(n, provider.StateRunning)(v)
		listed(n, provider.StateRunning)(v)
		v.Proxy.Status.Endpoint = &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: n, Since: start.Add(-50 * time.Minute)}
		v.Proxy.Status.Health = fleet.Health{Incarnation: n, Healthy: true, Outcome: fleet.OutcomeOK, LastProbeTime: start.Add(-time.Minute)}
		open(n)(v)
	}
}

// open is a catalog entry that grants leases on an incarnation, since long.
func open(n int64) given {
	return func(v *View) {
		v.Entry = &fleet.Entry{Host: "192.0.2.1", Port: 3128, Incarnation: n, MaxLeases: 5, Capacity: 5, Ceiling: 5, NarrowTime: start.Add(-50 * time.Minute)}
	}
}

// closed is a catalog entry that grants none, since ago.
func closed(ago time.Duration) given {
	return func(v *View) {
		if v.Entry == nil {
			v.Entry = &fleet.Entry{}
		}
		v.Entry.Gate, v.Entry.NarrowTime = fleet.GateDraining, start.Add(-ago)
	}
}

// movedOn is a catalog entry that grants leases on a later incarnation, since ago.
func movedOn(n int64, ago time.Duration) given {
	return func(v *View) {
		open(n)(v)
		v.Entry.NarrowTime = start.Add(-ago)
	}
}

func draining(reason string, incarnation int64, left time.Duration) given {
	return func(v *View) {
		v.Proxy.Status.Drain = &fleet.Drain{Reason: reason, Incarnation: incarnation, Since: start.Add(-time.Minute), Deadline: start.Add(left)}
	}
}

// switchedTo is a Proxy whose new leases go to incarnation n while n-1 drains.
func switchedTo(n int64) given {
	return func(v *View) {
		serving(n - 1)(v)
		successor(n, provider.StateRunning)(v)
		listed(n, provider.StateRunning)(v)
		v.Proxy.Status.Endpoint = &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: n, Since: start.Add(-time.Minute)}
		v.Proxy.Status.Health = fleet.Health{Incarnation: n, Healthy: true}
		draining(string(ReasonRotate), n-1, 9*time.Minute)(v)
		movedOn(n, time.Minute)(v)
	}
}

func slots(s ...store.Slot) given { return func(v *View) { v.Slots = &s } }

func slotOn(incarnation int64, left time.Duration) store.Slot {
	return store.Slot{Proxy: "p", LeaseID: "l", Incarnation: incarnation, ExpireTime: start.Add(left)}
}

func retry(class string, attempts int32, wait time.Duration) given {
	return func(v *View) {
		v.Proxy.Status.Retry = &fleet.Retry{Class: class, Attempts: attempts, NotBefore: start.Add(wait), Reason: "R", Message: "m", SpecHash: fleet.SpecHash(v.Proxy.Spec)}
	}
}

// specChanged has the spec ask for another machine than instances were made by so far.
func specChanged(v *View) {
	placement := *v.Proxy.Spec.Placement
	placement.MachineType = "other"
	v.Proxy.Spec.Placement = &placement
}

func unhealthySince(ago time.Duration) given {
	return func(v *View) {
		h := &v.Proxy.Status.Health
		h.Healthy, h.Outcome, h.UnhealthySince = false, fleet.OutcomeRefused, start.Add(-ago)
	}
}

func provenNext(n int64) given {
	return func(v *View) { v.Proxy.Status.NextHealth = fleet.Health{Incarnation: n, Healthy: true} }
}

func deletedProxy(v *View) { v.Proxy.DeleteTime = start.Add(-5 * time.Minute) }

func fullCloud(v *View) { v.Cloud.Max, v.Cloud.Others = 3, 3 }

func lastPlace(v *View) { v.Cloud.Max, v.Cloud.Others = 3, 2 }

func noStatus(v *View) {
	v.Proxy.Status = fleet.Status{}
}

func maxAge(d time.Duration) given {
	return func(v *View) {
		age := fleet.Duration(d)
		v.Proxy.Spec.Lifecycle.MaxAge = &age
	}
}

var (
	errQuota     = &provider.Error{Class: provider.ErrQuotaExceeded, Reason: "QUOTA_EXCEEDED", Err: errors.New("limit of 8 CPUs")}
	errStockOut  = &provider.Error{Class: provider.ErrQuotaExceeded, Reason: "ZONE_RESOURCE_POOL_EXHAUSTED", Zone: "r1-a", StockOut: true}
	errTransient = &provider.Error{Class: provider.ErrTransient, Reason: "503"}
	errPermanent = &provider.Error{Class: provider.ErrPermanent, Reason: "invalid", Err: errors.New("no such machine type")}
	errTaken     = &provider.Error{Class: provider.ErrPermanent, Reason: provider.ReasonNameConflict}
)
