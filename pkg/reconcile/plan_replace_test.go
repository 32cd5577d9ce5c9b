package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// replaceRows: a running instance is to be replaced.
func replaceRows() []planRow {
	begins := func(why Reason) func(*testing.T, Decision) {
		return func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
			assert.Equal(t, nameP(1), d.Status.Instance.Name, "the old one stays")
			assert.EqualValues(t, 1, d.Status.Endpoint.Incarnation, "and serves")
			assert.Equal(t, string(why), d.Status.Replacing)
			assert.Equal(t, why, d.Why)
			assert.Equal(t, fleet.PhaseReplacing, d.Status.Phase)
			assert.Equal(t, 2, d.Holds)
		}
	}
	waits := func(t *testing.T, d Decision) {
		assert.Empty(t, d.Actions)
		assert.Nil(t, d.Status.Next)
		assert.Empty(t, d.Status.Replacing)
		assert.EqualValues(t, 1, d.Status.Endpoint.Incarnation)
	}
	rotate := func(v *View) { v.Proxy.RotateTime = start.Add(-time.Minute) }
	full := func(v *View) { v.Cloud.Max, v.Cloud.Others = 3, 2 }
	return []planRow{
		{"another spec makes a successor before anything breaks", RowReplace, viewOf(serving(1), specChanged), begins(ReasonSpecChanged)},
		{"age does", RowReplace, viewOf(serving(1), maxAge(time.Hour)), begins(ReasonMaxAge)},
		{"age does not before its time", RowRunning, viewOf(serving(1), maxAge(time.Hour+time.Second)), waits},
		{"somebody's wish does", RowReplace, viewOf(serving(1), rotate), begins(ReasonRotate)},
		{"a wish of the future waits", RowRunning, viewOf(serving(1), func(v *View) { v.Proxy.RotateTime = start.Add(time.Minute) }), waits},
		{"a wish older than the instance is fulfilled", RowRunning, viewOf(serving(1), func(v *View) { v.Proxy.RotateTime = start.Add(-2 * time.Hour) }), waits},
		{"a long bad health does", RowReplace, viewOf(serving(1), unhealthySince(10*time.Minute)), begins(ReasonUnhealthy)},
		{"a short one does not", RowRunning, viewOf(serving(1), unhealthySince(9*time.Minute)), waits},
		{"none does when the spec says never", RowRunning, viewOf(serving(1), unhealthySince(time.Hour), func(v *View) {
			never := fleet.Duration(0)
			v.Proxy.Spec.Lifecycle.ReplaceUnhealthyAfter = &never
		}), waits},
		{"the health of an older instance does not count", RowRunning, viewOf(serving(2), unhealthySince(time.Hour), func(v *View) { v.Proxy.Status.Health.Incarnation = 1 }), nil},
		{"labels and leases need no new instance", RowRunning, viewOf(serving(1), func(v *View) {
			n := int32(50)
			v.Proxy.Spec.MaxLeases, v.Proxy.Labels = &n, map[string]string{"pool": "other"}
		}), waits},
		{"in a melt-down nobody is replaced for bad health", RowMeltDown, viewOf(serving(1), unhealthySince(time.Hour), func(v *View) { v.Cloud.MeltDown = true }), waits},
		{"other reasons hold in a melt-down", RowReplace, viewOf(serving(1), rotate, func(v *View) { v.Cloud.MeltDown = true }), begins(ReasonRotate)},
		{"no more replacements than may be under way", RowQueued, viewOf(serving(1), rotate, func(v *View) { v.Cloud.MayReplace = false }), waits},
		{"a duplicate goes first", RowQueued, viewOf(serving(2), rotate, found(1, terminatedState)), nil},
		{"a refused successor is waited for", RowReplaceBackOff, viewOf(serving(1), rotate, retry("QuotaExceeded", 1, time.Second)), waits},
		{"a zone with machines is waited for", RowReplaceBackOff, viewOf(serving(1), rotate, func(v *View) {
			v.Cloud.Cooling = map[string]time.Time{"r1-a": start.Add(time.Minute), "r1-b": start.Add(time.Minute)}
		}), waits},
		{"a successor that is refused for good leaves the old one serving", RowReplaceFailed, viewOf(serving(1), specChanged, retry("Permanent", 1, -time.Hour), func(v *View) {
			v.Proxy.Status.Retry.SpecHash = fleet.SpecHash(v.Proxy.Spec)
		}), func(t *testing.T, d Decision) {
			waits(t, d)
			assert.Equal(t, fleet.PhaseRunning, d.Status.Phase)
		}},
		{"at the cap the old one drains first", RowDrainFirst, viewOf(serving(1), rotate, full), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Nil(t, d.Status.Next)
			assert.Equal(t, &fleet.Drain{Reason: "Rotate", Since: start, Deadline: start.Add(10 * time.Minute), Incarnation: 1}, d.Status.Drain)
			assert.Equal(t, ReasonRotate, d.Why)
		}},
		{"and is not deleted while it has leases", RowDrainOld, viewOf(serving(1), rotate, full, draining("Rotate", 1, time.Minute), replacing, closed(time.Minute), slots(slotOn(1, time.Second))), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"but when they have ended", RowDrained, viewOf(serving(1), rotate, full, draining("Rotate", 1, time.Minute), replacing, closed(time.Minute), slots()), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
			assert.Nil(t, d.Status.Endpoint)
			assert.True(t, d.Status.Instance.Deleting)
		}},
		{"and its place is its successor's", RowCreate, viewOf(instance(1, runningState), full, replacing, func(v *View) { v.Proxy.Status.Instance.Deleting = true }, gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
			assert.Equal(t, "Rotate", d.Status.Replacing, "until it is up")
		}},
		{"a drain for a reason that is gone is called off", RowRunning, viewOf(serving(1), full, draining("Unhealthy", 1, time.Minute), replacing, closed(time.Minute)), func(t *testing.T, d Decision) {
			assert.Nil(t, d.Status.Drain)
			assert.Empty(t, d.Status.Replacing)
			assert.Equal(t, EventDrainEnded, lastEvent(d))
		}},
	}
}

func replacing(v *View) { v.Proxy.Status.Replacing = string(ReasonRotate) }

// switchedRows: there is a successor.
func switchedRows() []planRow {
	next := func(steps ...given) View { return viewOf(append([]given{serving(1), successor(2, "")}, steps...)...) }
	up := func(steps ...given) View {
		return viewOf(append([]given{serving(1), successor(2, runningState), listed(2, runningState)}, steps...)...)
	}
	ages := func(ago time.Duration) given {
		return func(v *View) {
			v.Proxy.Status.Next.IntentTime, v.Proxy.Status.Next.CreateTime = start.Add(-ago), start.Add(-ago)
			for i := range v.Listed {
				v.Listed[i].CreateTime = start.Add(-ago)
			}
		}
	}
	judgedBad := func(ago time.Duration) given {
		return func(v *View) {
			v.Proxy.Status.NextHealth = fleet.Health{Incarnation: 2, Outcome: fleet.OutcomeRefused, UnhealthySince: start.Add(-ago)}
		}
	}
	dropped := func(t *testing.T, d Decision) {
		assert.Nil(t, d.Status.Next)
		assert.Empty(t, d.Status.Replacing, "its place is free for others")
		assert.EqualValues(t, 1, d.Status.Endpoint.Incarnation)
		assert.Equal(t, nameP(1), d.Status.Instance.Name)
	}
	rejected := func(t *testing.T, d Decision) {
		assert.Equal(t, []string{"delete " + nameP(2)}, actions(d))
		assert.True(t, d.Status.Next.Deleting)
		assert.EqualValues(t, 1, d.Status.Endpoint.Incarnation)
	}
	return []planRow{
		{"a successor's intent is looked for", RowAsk, next(), asked(nameP(2))},
		{"it is asked for under its name", RowNextAgain, next(gone(2)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
		}},
		{"a lost reply keeps its name", RowRefused, next(answered(2, errTransient)), func(t *testing.T, d Decision) {
			assert.Equal(t, nameP(2), d.Status.Next.Name)
		}},
		{"and is tried again after the back-off", RowReplaceBackOff, next(gone(2), retry("Transient", 1, time.Second)), nil},
		{"a refusal frees its place", RowNextDropped, next(answered(2, errQuota)), dropped},
		{"a refusal for good frees its place", RowNextDropped, next(answered(2, errPermanent)), func(t *testing.T, d Decision) {
			dropped(t, d)
			assert.Equal(t, "Permanent", d.Status.Retry.Class)
			assert.Equal(t, fleet.PhaseRunning, d.Status.Phase)
		}},
		{"and the latch gives it up", RowNextDropped, next(gone(2), retry("Permanent", 1, -time.Hour)), dropped},
		{"a stock-out moves it", RowNextZone, next(answered(2, errStockOut)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-b"}, actions(d))
		}},
		{"a cap that was lowered gives it up", RowFull, next(gone(2), fullCloud), dropped},
		{"an outdated intent is given up", RowNextDropped, next(gone(2), func(v *View) { v.Proxy.Status.Next.SpecHash = "older" }), dropped},
		{"a failed launch frees its place", RowNextDropped, viewOf(serving(1), successor(2, provisioningState), failedLaunch(2, *errQuota)), dropped},
		{"one that vanished is given up", RowNextDropped, viewOf(serving(1), successor(2, provisioningState), gone(2)), dropped},
		{"somebody else's under its name is given up, not deleted", RowNextDropped, next(found(2, runningState), func(v *View) { v.Facts[nameP(2)].Seen.Owner = "x" }), func(t *testing.T, d Decision) {
			dropped(t, d)
			assert.Empty(t, d.Actions)
		}},
		{"one that is coming up is waited for", RowNextBooting, viewOf(serving(1), successor(2, provisioningState), listed(2, provisioningState), ages(time.Minute)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"one that is late is deleted", RowNextRejected, viewOf(serving(1), successor(2, provisioningState), listed(2, provisioningState)), rejected},
		{"one by an older spec is deleted", RowNextRejected, up(specChanged), rejected},
		{"one that stopped is given up", RowNextDropped, viewOf(serving(1), successor(2, runningState), found(2, terminatedState)), func(t *testing.T, d Decision) {
			dropped(t, d)
			assert.Equal(t, []string{"delete " + nameP(2)}, actions(d))
		}},
		{"one in an unknown state is not acted upon", RowUnknown, viewOf(serving(1), successor(2, runningState), listed(2, unknownState)), nil},
		{"one that goes is waited for", RowDeleting, viewOf(serving(1), successor(2, runningState), listed(2, stoppingState), func(v *View) { v.Proxy.Status.Next.Deleting = true }), nil},
		{"one that is gone is given up", RowNextDropped, viewOf(serving(1), successor(2, runningState), gone(2), func(v *View) { v.Proxy.Status.Next.Deleting = true }), dropped},
		{"one that is up proves itself first", RowNextProving, up(), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"the health of another incarnation proves nothing", RowNextProving, up(provenNext(3)), nil},
		{"one that nobody has judged is not judged by its age", RowNextProving, up(ages(24 * time.Hour)), nil},
		{"one that is unhealthy for long is deleted", RowNextRejected, up(judgedBad(10 * time.Minute)), rejected},
		{"one without an address is deleted", RowNextRejected, up(func(v *View) { v.Listed[1].Address = "" }), rejected},
		{"a healthy successor takes over, and nothing is deleted", RowSwitch, up(provenNext(2)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: 2, Since: start}, d.Status.Endpoint)
			assert.Equal(t, fleet.Health{Incarnation: 2, Healthy: true}, d.Status.Health)
			assert.Equal(t, fleet.Health{}, d.Status.NextHealth)
			assert.Equal(t, store.AllFields, d.Fields)
			assert.Equal(t, &fleet.Drain{Reason: "Rotate", Since: start, Deadline: start.Add(10 * time.Minute), Incarnation: 1}, d.Status.Drain)
			assert.True(t, condition(t, d, fleet.ConditionReady).Status)
		}},
		{"the old one keeps its leases", RowDrainOld, viewOf(switchedTo(2), slots(slotOn(1, time.Second))), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"a lease counts for two seconds beyond its end", RowDrainOld, viewOf(switchedTo(2), slots(slotOn(1, -time.Second))), nil},
		{"leases on the successor hold up nothing", RowDrained, viewOf(switchedTo(2), slots(slotOn(2, time.Hour))), nil},
		{"leases are counted only ten seconds after the catalog was told", RowDrainOld, viewOf(switchedTo(2), movedOn(2, 9*time.Second), slots()), nil},
		{"and then they are asked for", RowAsk, viewOf(switchedTo(2), movedOn(2, 10*time.Second)), func(t *testing.T, d Decision) {
			assert.True(t, d.Ask.Slots)
		}},
		{"a catalog that was not told holds up the delete", RowDrainOld, viewOf(switchedTo(2), open(1), slots()), nil},
		{"a catalog that was lost holds up the delete", RowDrainOld, viewOf(switchedTo(2), func(v *View) { v.Entry = nil }, slots()), nil},
		{"without leases the old one is deleted", RowDrained, viewOf(switchedTo(2), slots()), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
			assert.EqualValues(t, 2, d.Status.Endpoint.Incarnation)
		}},
		{"past the deadline it is deleted with its leases", RowDrained, viewOf(switchedTo(2), draining("Rotate", 1, 0), slots(slotOn(1, time.Hour))), nil},
		{"when the old one is gone the successor is the instance", RowRunning, viewOf(switchedTo(2), func(v *View) {
			v.Proxy.Status.Instance.Deleting, v.Listed = true, v.Listed[1:]
		}, gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, nameP(2), d.Status.Instance.Name)
			assert.Nil(t, d.Status.Next)
			assert.Nil(t, d.Status.Drain)
			assert.Empty(t, d.Status.Replacing)
			assert.Empty(t, d.Why, "that was counted when it began")
		}},
		{"a successor that dies gives way to the old one", RowSwitchBack, viewOf(switchedTo(2), func(v *View) { v.Listed = v.Listed[:1] }, gone(2)), func(t *testing.T, d Decision) {
			assert.Nil(t, d.Status.Next)
			assert.Nil(t, d.Status.Drain)
			assert.EqualValues(t, 1, d.Status.Endpoint.Incarnation)
			assert.Empty(t, d.Actions)
		}},
		{"also one that stopped", RowSwitchBack, viewOf(switchedTo(2), func(v *View) { v.Listed[1] = real(v, 2, terminatedState) }, found(2, terminatedState)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(2)}, actions(d))
		}},
	}
}

// deleteRows: the deletion of the Proxy was asked for.
func deleteRows() []planRow {
	going := func(steps ...given) View {
		return viewOf(append([]given{serving(1), deletedProxy, draining("Deleted", 0, 5*time.Minute), closed(time.Minute)}, steps...)...)
	}
	return []planRow{
		{"first there are no new leases", RowDrain, viewOf(serving(1), deletedProxy), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, &fleet.Drain{Reason: "Deleted", Since: start, Deadline: start.Add(10 * time.Minute)}, d.Status.Drain)
			assert.Equal(t, fleet.PhaseDraining, d.Status.Phase)
			assert.False(t, condition(t, d, fleet.ConditionReady).Status)
		}},
		{"a drain of the predecessor becomes one of all", RowDrain, viewOf(switchedTo(2), deletedProxy), nil},
		{"a paused Proxy goes as well", RowDrain, viewOf(serving(1), deletedProxy, func(v *View) { v.Proxy.Spec.Paused = true }), nil},
		{"a faulty document goes as well", RowDrain, viewOf(serving(1), deletedProxy, func(v *View) { v.Faults = fleet.Faults{{Path: "spec"}} }), nil},
		{"the leases are waited for", RowDraining, going(slots(slotOn(1, time.Minute))), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"those on older instances, too", RowDraining, going(slots(slotOn(0, time.Minute))), nil},
		{"but the catalog must be closed for ten seconds", RowDraining, going(closed(9*time.Second), slots()), nil},
		{"an open catalog holds it up even past the deadline", RowDraining, going(open(1), draining("Deleted", 0, -time.Minute), slots()), nil},
		{"without leases the instance is deleted", RowTakeDown, going(slots(slotOn(1, -3*time.Second))), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
			assert.Equal(t, fleet.PhaseDeleting, d.Status.Phase)
			assert.Nil(t, d.Status.Endpoint)
		}},
		{"past the deadline it is deleted with its leases", RowTakeDown, going(draining("Deleted", 0, 0), slots(slotOn(1, time.Hour))), nil},
		{"its successor and its duplicates go, too", RowTakeDown, going(successor(3, runningState), listed(3, runningState), found(2, runningState), slots()), func(t *testing.T, d Decision) {
			assert.ElementsMatch(t, []string{"delete " + nameP(1), "delete " + nameP(2), "delete " + nameP(3)}, actions(d))
		}},
		{"what is stopping is waited for", RowTakeDown, going(func(v *View) { v.Listed[0] = real(v, 1, stoppingState) }, slots()), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"a listing is not believed that it is gone", RowAsk, going(func(v *View) { v.Listed = nil }, slots()), asked(nameP(1))},
		{"also in a zone that is silent", RowAsk, going(func(v *View) {
			v.Listed, v.Cloud.Partial, v.Cloud.Silent = nil, true, map[string]bool{"r1-a": true}
		}, slots()), asked(nameP(1))},
		{"while the cloud does not answer nothing is removed", RowUncertain, going(func(v *View) { v.Listed = nil }, slots(), fact(1, Fact{GetErr: errTransient})), nil},
		{"nor in an unknown state", RowUncertain, going(func(v *View) { v.Listed[0] = real(v, 1, unknownState) }, slots()), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"nor when the provider cannot be listed", RowUncertain, going(func(v *View) { v.Cloud.Blind, v.Listed = true, nil }, slots()), nil},
		{"an absent instance is a deleted one, and the document goes", RowRemove, going(func(v *View) { v.Listed = nil }, slots(), gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"remove"}, actions(d))
			assert.Nil(t, d.Status.Instance)
		}},
		{"somebody else's instance under its name stays", RowRemove, going(func(v *View) { v.Listed = nil }, slots(), found(1, runningState), func(v *View) {
			v.Facts[nameP(1)].Seen.Owner = "somebody"
		}), func(t *testing.T, d Decision) { assert.Equal(t, []string{"remove"}, actions(d)) }},
		{"a refused delete is tried again later", RowTakeDown, going(slots(), fact(1, Fact{DeleteErr: errPermanent})), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, "DeleteFailed", d.Status.Retry.Reason)
			assert.NotNil(t, d.Status.Instance)
		}},
		{"an External proxy waits for its leases and goes", RowRemove, going(slots(), func(v *View) {
			v.Proxy.Status.Accepted, v.Proxy.Status.Instance, v.Listed = &fleet.Accepted{Mode: fleet.External}, nil, nil
			v.Cloud = Cloud{}
		}), nil},
		{"a Proxy that was never accepted goes", RowRemove, viewOf(noStatus, deletedProxy, draining("Deleted", 0, time.Minute), closed(time.Minute), slots(), func(v *View) {
			v.Proxy.Spec, v.Cloud = fleet.Spec{}, Cloud{}
		}), nil},
		{"instances at a provider that is gone keep the document", RowStranded, going(slots(), func(v *View) { v.Cloud, v.Listed = Cloud{}, nil }), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, "ProviderUnknown", condition(t, d, fleet.ConditionProvisioned).Reason)
		}},
		{"a drain timeout of nothing does not wait for leases", RowTakeDown, going(draining("Deleted", 0, 0), slots(slotOn(1, time.Minute))), nil},
	}
}

// adoptRows: instances of ours that the status does not name.
func adoptRows() []planRow {
	entryOnly := func(v *View) {
		noStatus(v)
		open(2)(v)
	}
	return []planRow{
		{"a listed instance is looked at before it is adopted", RowAsk, viewOf(noStatus, listed(2, runningState)), asked(nameP(2))},
		{"after a lost status the highest incarnation is adopted", RowRunning, viewOf(noStatus, found(1, runningState), found(2, runningState), movedOn(2, time.Minute), slots(slotOn(1, time.Minute)), gone(3), gone(4)), func(t *testing.T, d Decision) {
			assert.Equal(t, nameP(2), d.Status.Instance.Name)
			assert.EqualValues(t, 2, d.Status.Incarnation)
			assert.EqualValues(t, 2, d.Status.Endpoint.Incarnation)
			assert.Empty(t, d.Actions, "the leased one stays for now")
			assert.Equal(t, &fleet.Drain{Reason: "Duplicate", Since: start, Deadline: start.Add(10 * time.Minute), Incarnation: 1}, d.Status.Drain)
		}},
		{"the duplicate is deleted when it has no leases", RowRunning, viewOf(serving(2), found(1, runningState), movedOn(2, time.Minute), slots()), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
			assert.Equal(t, EventDuplicate, lastEvent(d))
		}},
		{"a stopped duplicate is deleted at once", RowRunning, viewOf(serving(2), found(1, terminatedState)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
		}},
		{"a duplicate that only a listing shows is looked at", RowAsk, viewOf(serving(2), listed(1, runningState)), asked(nameP(1))},
		{"one that is gone in truth is nothing", RowRunning, viewOf(serving(2), listed(1, runningState), gone(1)), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"one in an unknown state is not acted upon", RowRunning, viewOf(serving(2), found(1, unknownState)), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"a duplicate that is waited for counts while no listing shows it", RowAsk, viewOf(serving(2), draining("Duplicate", 1, time.Minute)), asked(nameP(1))},
		{"also while nobody knows of it", RowQueued, viewOf(serving(2), draining("Duplicate", 1, time.Minute), fact(1, Fact{GetErr: errTransient}), func(v *View) { v.Proxy.RotateTime = start }), nil},
		{"and not when it is gone", RowRunning, viewOf(serving(2), draining("Duplicate", 1, time.Minute), gone(1)), func(t *testing.T, d Decision) { assert.Nil(t, d.Status.Drain) }},
		{"a lost status is looked for by name around what the catalog knows", RowAsk, viewOf(entryOnly), asked(nameP(1), nameP(2), nameP(3), nameP(4))},
		{"while one of them cannot be looked at nothing is created", RowUncertain, viewOf(entryOnly, gone(1), gone(2), gone(3), fact(4, Fact{GetErr: errTransient})), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"nor while the listing is incomplete", RowUncertain, viewOf(entryOnly, func(v *View) { v.Cloud.Partial = true }), nil},
		{"when there is none the count begins anew", RowCreate, viewOf(entryOnly, gone(1), gone(2), gone(3), gone(4)), func(t *testing.T, d Decision) {
			assert.EqualValues(t, 1, d.Status.Incarnation)
		}},
		{"the count goes on from what is listed, dead or alive", RowCreate, viewOf(noStatus, found(7, stoppingState)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(8) + " in r1-a"}, actions(d))
		}},
		{"an instance of somebody else is never ours", RowCreate, viewOf(noStatus, listed(1, runningState), func(v *View) { v.Listed[0].Owner = "x" }), nil},
		{"nor one of another Proxy", RowCreate, viewOf(noStatus, listed(1, runningState), func(v *View) { v.Listed[0].UID = "x" }), nil},
		{"an adopted instance of unknown age is not old", RowProvisioning, viewOf(noStatus, found(1, provisioningState), func(v *View) { v.Facts[nameP(1)].Seen.CreateTime = time.Time{} }), nil},
		{"adoption keeps the cap", RowRunning, viewOf(noStatus, found(1, runningState), fullCloud), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
	}
}
