package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// planRow is a row of the table as a test: what is seen, what follows.
type planRow struct {
	promise string
	row     Row
	view    View
	then    func(t *testing.T, d Decision)
}

const (
	provisioningState = provider.StateProvisioning
	runningState      = provider.StateRunning
	stoppingState     = provider.StateStopping
	terminatedState   = provider.StateTerminated
	unknownState      = provider.StateUnknown
)

func TestPlan(t *testing.T) {
	t.Parallel()
	covered := map[Row]bool{}
	for _, rows := range [][]planRow{restingRows(), launchRows(), instanceRows(), replaceRows(), switchedRows(), deleteRows(), adoptRows()} {
		for _, r := range rows {
			covered[r.row] = true
			t.Run(string(r.row)+": "+r.promise, func(t *testing.T) {
				t.Parallel()
				before := r.view.Proxy.Status.Clone()
				d := Plan(r.view)
				require.Equal(t, r.row, d.Row)
				assert.Equal(t, before, r.view.Proxy.Status, "Plan changes nothing in its view")
				assert.Equal(t, d, Plan(r.view), "the same view leads to the same decision")
				if d.Row == RowAsk {
					assert.False(t, d.Changed(r.view))
					assert.Empty(t, d.Actions)
					assert.False(t, d.Ask.Empty())
				}
				if r.then != nil {
					r.then(t, d)
				}
				assertAtRest(t, r.view, d)
			})
		}
	}
	for _, row := range Rows() {
		assert.True(t, covered[row], "no test sees row %s", row)
	}
}

// assertAtRest: what was decided once is not decided again while nothing happens.
func assertAtRest(t *testing.T, v View, d Decision) {
	t.Helper()
	if !d.Ask.Empty() || len(d.Actions) > 0 {
		return
	}
	v.Proxy.Status = d.Status
	for name, f := range v.Facts {
		f.CreateErr, f.DeleteErr, f.Failure = nil, nil, nil
		v.Facts[name] = f
	}
	again := Plan(v)
	if again.Ask.Empty() && len(again.Actions) == 0 && again.Row == d.Row {
		assert.False(t, again.Changed(v), "decided twice: %+v\n%+v", d.Status, again.Status)
	}
}

func actions(d Decision) []string {
	out := []string{}
	for _, a := range d.Actions {
		switch a.Verb {
		case Create:
			out = append(out, "create "+a.Create.Name+" in "+a.Create.Zone)
		case Delete:
			out = append(out, "delete "+a.Ref.Name)
		case Remove:
			out = append(out, "remove")
		}
	}
	return out
}

func condition(t *testing.T, d Decision, of fleet.ConditionType) fleet.Condition {
	t.Helper()
	c, ok := d.Status.Conditions.Get(of)
	require.True(t, ok)
	return c
}

func lastEvent(d Decision) string {
	if len(d.Status.Events) == 0 {
		return ""
	}
	return d.Status.Events[len(d.Status.Events)-1].Reason
}

func asked(names ...string) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		got := []string{}
		for _, r := range d.Ask.Get {
			got = append(got, r.Name)
		}
		assert.ElementsMatch(t, names, got)
	}
}

// restingRows: nothing is asked of a cloud.
func restingRows() []planRow {
	external := func(v *View) {
		s, _ := fleet.Decode(map[string]any{"mode": "External", "endpoint": map[string]any{"host": "proxy.example.net", "port": 8080}})
		v.Proxy.Spec, v.Proxy.Status.Accepted = s, &fleet.Accepted{Mode: fleet.External}
	}
	invalid := func(v *View) {
		v.Faults = fleet.Faults{{Path: "spec.maxLeases", Value: "9999", Message: "must be between 0 and 1000"}}
	}
	idle := func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }
	return []planRow{
		{"a broken document loses nothing but its acceptance", RowInvalid, viewOf(serving(1), invalid), func(t *testing.T, d Decision) {
			idle(t, d)
			c := condition(t, d, fleet.ConditionAccepted)
			assert.False(t, c.Status)
			assert.Equal(t, "InvalidSpec", c.Reason)
			assert.Contains(t, c.Message, "spec.maxLeases: 9999")
			assert.NotNil(t, d.Status.Instance)
			assert.NotNil(t, d.Status.Endpoint)
			assert.False(t, condition(t, d, fleet.ConditionReady).Status)
			assert.Equal(t, EventRejected, lastEvent(d))
		}},
		{"a mended document is accepted again, and its history says so", RowRunning, viewOf(serving(1), func(v *View) {
			v.Proxy.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionAccepted, Reason: "InvalidSpec"}, start)
		}), func(t *testing.T, d Decision) {
			assert.True(t, condition(t, d, fleet.ConditionAccepted).Status)
			assert.Equal(t, EventAccepted, lastEvent(d))
		}},
		{"an External proxy has no instance and is provisioned", RowExternal, viewOf(external), func(t *testing.T, d Decision) {
			idle(t, d)
			assert.Equal(t, "External", condition(t, d, fleet.ConditionProvisioned).Reason)
			assert.Equal(t, &fleet.StatusEndpoint{Host: "proxy.example.net", Port: 8080, Since: start}, d.Status.Endpoint)
			assert.Equal(t, store.ReconcileFields, d.Fields)
			assert.Equal(t, fleet.PhaseRunning, d.Status.Phase)
		}},
		{"an External proxy at another address proves itself anew", RowExternal, viewOf(external, func(v *View) {
			v.Proxy.Status.Endpoint = &fleet.StatusEndpoint{Host: "old.example.net", Port: 8080}
			v.Proxy.Status.Health = fleet.Health{Healthy: true, Outcome: fleet.OutcomeOK}
		}), func(t *testing.T, d Decision) {
			assert.Equal(t, fleet.Health{}, d.Status.Health)
			assert.Equal(t, store.AllFields, d.Fields)
			assert.False(t, condition(t, d, fleet.ConditionHealthy).Status)
		}},
		{"a provider that is not configured gets no call", RowUnknownProvider, viewOf(serving(1), func(v *View) { v.Cloud = Cloud{} }), func(t *testing.T, d Decision) {
			idle(t, d)
			assert.Equal(t, "ProviderUnknown", condition(t, d, fleet.ConditionProvisioned).Reason)
			assert.NotNil(t, d.Status.Instance)
		}},
		{"a paused Proxy gets no call, whatever there is to do", RowPaused, viewOf(serving(1), specChanged, func(v *View) { v.Proxy.Spec.Paused = true }), func(t *testing.T, d Decision) {
			idle(t, d)
			assert.Nil(t, d.Status.Next)
			assert.NotNil(t, d.Status.Endpoint)
			c := condition(t, d, fleet.ConditionReady)
			assert.Equal(t, "Paused", c.Reason)
		}},
		{"a paused new Proxy is not created", RowPaused, viewOf(noStatus, func(v *View) { v.Proxy.Spec.Paused = true }), idle},
		{"a provider that could not be listed gets no call", RowUncertain, viewOf(instance(1, runningState), func(v *View) { v.Cloud.Blind, v.Cloud.Partial, v.Cloud.BrokeOff = true, true, true }), idle},
		{"a new Proxy waits while its provider cannot be listed", RowUncertain, viewOf(noStatus, func(v *View) { v.Cloud.Blind = true }), idle},
		{"who shares an exit address is warned", RowRunning, viewOf(serving(1), func(v *View) {
			v.SharesExit = []string{"q"}
			v.Proxy.Status.Health.ExitAddress = "192.0.2.9"
		}), func(t *testing.T, d Decision) {
			c := condition(t, d, fleet.ConditionExitAddressShared)
			assert.True(t, c.Status)
			assert.Contains(t, c.Message, "q")
		}},
		{"the warning goes when it is over", RowRunning, viewOf(serving(1), func(v *View) {
			v.Proxy.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionExitAddressShared, Status: true}, start)
		}), func(t *testing.T, d Decision) {
			_, warned := d.Status.Conditions.Get(fleet.ConditionExitAddressShared)
			assert.False(t, warned)
		}},
		{"a deletion that was taken back leaves no drain behind", RowExternal, viewOf(external, draining("Deleted", 0, -time.Hour)), func(t *testing.T, d Decision) {
			assert.Nil(t, d.Status.Drain)
		}},
		{"a status that is another document's is dropped", RowCreate, viewOf(serving(1), func(v *View) {
			v.UID, v.Listed, v.Entry = "another-uid", nil, nil
		}), func(t *testing.T, d Decision) {
			assert.Equal(t, "another-uid", d.Status.UID)
			assert.EqualValues(t, 1, d.Status.Incarnation)
			assert.Equal(t, []string{"create " + provider.InstanceName("another-uid", 1) + " in r1-a"}, actions(d))
			assert.Equal(t, store.AllFields, d.Fields)
		}},
	}
}

// launchRows: there is no instance, or one that nobody has seen yet.
func launchRows() []planRow {
	oneZone := func(v *View) {
		placement := *v.Proxy.Spec.Placement
		placement.Zones = []string{"r1-a"}
		v.Proxy.Spec.Placement = &placement
	}
	cooling := func(zones ...string) given {
		return func(v *View) {
			for i, z := range zones {
				v.Cloud.Cooling[z] = start.Add(time.Duration(i+1) * time.Minute)
			}
		}
	}
	otherHash := func(v *View) { v.Proxy.Status.Instance.SpecHash = "older" }
	return []planRow{
		{"a new Proxy records its intent and is asked for", RowCreate, viewOf(noStatus), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(1) + " in r1-a"}, actions(d))
			assert.Equal(t, &fleet.Instance{Name: nameP(1), Incarnation: 1, Zone: "r1-a", SpecHash: d.Status.Instance.SpecHash, IntentTime: start}, d.Status.Instance)
			assert.Equal(t, uidP, d.Status.UID)
			assert.Equal(t, &fleet.Accepted{Mode: fleet.Managed, Provider: "main"}, d.Status.Accepted)
			assert.Equal(t, fleet.PhaseProvisioning, d.Status.Phase)
			assert.Equal(t, EventCreating, lastEvent(d))
			assert.Equal(t, 1, d.Holds)
			req := d.Actions[0].Create
			assert.Equal(t, provider.CreateRequest{
				Name: nameP(1), Owner: testOwner, UID: uidP, Incarnation: 1, SpecHash: d.Status.Instance.SpecHash, ProxyName: "p",
				Region: "r1", Zone: "r1-a", MachineType: "small", Port: 3128,
			}, req)
		}},
		{"an intent whose instance nobody has seen is looked for first", RowAsk, viewOf(instance(1, "")), asked(nameP(1))},
		{"an intent that came to nothing is asked for under the same name", RowCreateAgain, viewOf(instance(1, ""), gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(1) + " in r1-a"}, actions(d))
			assert.EqualValues(t, 1, d.Status.Incarnation)
		}},
		{"an intent by an older spec gets a new name", RowCreate, viewOf(instance(1, ""), otherHash, gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
		}},
		{"an intent stays as it is while the cloud does not answer", RowUncertain, viewOf(instance(1, ""), fact(1, Fact{GetErr: errTransient})), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"the first transient failure waits 15 seconds", RowRefused, viewOf(instance(1, ""), answered(1, errTransient)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, &fleet.Retry{Attempts: 1, NotBefore: start.Add(15 * time.Second), Class: "Transient", Reason: "503", Message: d.Status.Retry.Message, SpecHash: d.Status.Retry.SpecHash}, d.Status.Retry)
			assert.Equal(t, nameP(1), d.Status.Instance.Name)
			assert.Equal(t, "CreateFailed", condition(t, d, fleet.ConditionProvisioned).Reason)
			assert.Equal(t, fleet.PhasePending, d.Status.Phase)
		}},
		{"an unclassified failure counts as transient", RowRefused, viewOf(instance(1, ""), answered(1, errors.New("what?"))), func(t *testing.T, d Decision) {
			assert.Equal(t, "Transient", d.Status.Retry.Class)
		}},
		{"quota waits by the minute, longer each time", RowRefused, viewOf(instance(1, ""), retry("QuotaExceeded", 2, -time.Second), answered(1, errQuota)), func(t *testing.T, d Decision) {
			assert.EqualValues(t, 3, d.Status.Retry.Attempts)
			assert.Equal(t, start.Add(4*time.Minute+12*time.Second), d.Status.Retry.NotBefore)
			c := condition(t, d, fleet.ConditionProvisioned)
			assert.Equal(t, "QuotaExceeded", c.Reason)
			assert.Contains(t, c.Message, "limit of 8 CPUs", "the cloud's own words")
		}},
		{"another class of failure counts from one", RowRefused, viewOf(instance(1, ""), retry("QuotaExceeded", 7, -time.Second), answered(1, errTransient)), func(t *testing.T, d Decision) {
			assert.EqualValues(t, 1, d.Status.Retry.Attempts)
		}},
		{"the cloud's own wish to be left alone is kept", RowRefused, viewOf(instance(1, ""), answered(1, &provider.Error{Class: provider.ErrTransient, RetryAfter: time.Hour})), func(t *testing.T, d Decision) {
			assert.Equal(t, start.Add(time.Hour), d.Status.Retry.NotBefore)
		}},
		{"nothing is tried before the back-off is over", RowBackOff, viewOf(instance(1, ""), retry("Transient", 1, time.Second), gone(1)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"it is tried when the back-off is over", RowCreateAgain, viewOf(instance(1, ""), retry("Transient", 1, 0), gone(1)), nil},
		{"another spec does not wait for the old one's back-off", RowCreate, viewOf(instance(1, ""), retry("QuotaExceeded", 5, time.Hour), specChanged, gone(1)), func(t *testing.T, d Decision) {
			assert.Nil(t, d.Status.Retry)
		}},
		{"a permanent refusal is latched", RowFailed, viewOf(instance(1, ""), answered(1, errPermanent)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, fleet.PhaseFailed, d.Status.Phase)
			assert.Equal(t, "CreateRefused", condition(t, d, fleet.ConditionProvisioned).Reason)
			assert.Contains(t, condition(t, d, fleet.ConditionProvisioned).Message, "no such machine type")
		}},
		{"a latched refusal is not tried again, ever", RowFailed, viewOf(instance(1, ""), retry("Permanent", 1, -100*time.Hour), gone(1)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"another spec opens the latch", RowCreate, viewOf(instance(1, ""), retry("Permanent", 1, -time.Hour), specChanged, gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
		}},
		{"a wish for a fresh instance opens the latch", RowCreateAgain, viewOf(instance(1, ""), retry("Permanent", 1, -time.Hour), gone(1), func(v *View) { v.Proxy.RotateTime = start.Add(-time.Minute) }), nil},
		{"an older wish does not", RowFailed, viewOf(instance(1, ""), retry("Permanent", 1, -time.Hour), gone(1), func(v *View) { v.Proxy.RotateTime = start.Add(-2 * time.Hour) }), nil},
		{"a zone without machines is left for the next one under the same name", RowNextZone, viewOf(instance(1, ""), answered(1, errStockOut)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(1) + " in r1-b"}, actions(d))
			assert.Equal(t, "r1-b", d.Status.Instance.Zone)
			assert.Equal(t, map[string]time.Time{"r1-a": start.Add(coolDown)}, d.Cool)
			assert.Equal(t, EventZone, lastEvent(d))
		}},
		{"a launch that failed for want of machines is certain, too", RowNextZone, viewOf(instance(1, provisioningState), failedLaunch(1, *errStockOut)), nil},
		{"no other zone is tried where others have its place by now", RowRefused, viewOf(instance(1, ""), answered(1, errStockOut), fullCloud), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Contains(t, d.Cool, "r1-a", "and yet everybody learns of the stock-out")
		}},
		{"nor where instances of its own turned up that are too many", RowRefused, viewOf(instance(3, ""), answered(3, errStockOut), found(1, runningState), found(2, runningState)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"with no other zone it backs off and does not hurry", RowRefused, viewOf(oneZone, instance(1, ""), answered(1, errStockOut)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, start.Add(63*time.Second), d.Status.Retry.NotBefore)
			assert.Contains(t, d.Cool, "r1-a")
		}},
		{"a zone that may hold the instance after all is not left", RowRefused, viewOf(instance(1, ""), answered(1, errTransient)), func(t *testing.T, d Decision) {
			assert.Equal(t, "r1-a", d.Status.Instance.Zone)
		}},
		{"a new instance avoids zones that others found without machines", RowCreate, viewOf(noStatus, cooling("r1-a")), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(1) + " in r1-b"}, actions(d))
		}},
		{"an intent moves to a zone with machines once it is known to be nowhere", RowCreateAgain, viewOf(instance(1, ""), gone(1), cooling("r1-a")), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(1) + " in r1-b"}, actions(d))
		}},
		{"with all zones without machines it waits", RowNoStock, viewOf(noStatus, cooling("r1-a", "r1-b")), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, "StockOut", condition(t, d, fleet.ConditionProvisioned).Reason)
		}},
		{"an intent waits as well", RowNoStock, viewOf(instance(1, ""), gone(1), cooling("r1-a", "r1-b")), nil},
		{"who has waited by its own back-off tries where stock is expected first", RowCreateAgain, viewOf(instance(1, ""), gone(1), retry("QuotaExceeded", 1, 0), cooling("r1-b", "r1-a")), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(1) + " in r1-b"}, actions(d))
		}},
		{"the cap of a provider is not exceeded", RowFull, viewOf(noStatus, fullCloud), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, "ProviderFull", condition(t, d, fleet.ConditionProvisioned).Reason)
		}},
		{"the last place is taken", RowCreate, viewOf(noStatus, lastPlace), nil},
		{"an intent has its place already", RowCreateAgain, viewOf(instance(1, ""), gone(1), lastPlace), nil},
		{"an intent beyond a lowered cap gives its place back", RowFull, viewOf(instance(1, ""), gone(1), fullCloud), func(t *testing.T, d Decision) {
			assert.Nil(t, d.Status.Instance)
			assert.Zero(t, d.Holds)
		}},
		{"a failed launch is learned from: the cloud's reason and a back-off", RowRefused, viewOf(instance(1, provisioningState),
			failedLaunch(1, provider.Error{Class: provider.ErrQuotaExceeded, Reason: "IP_SPACE_EXHAUSTED", Err: errors.New("no addresses left")})), func(t *testing.T, d Decision) {
			assert.Contains(t, condition(t, d, fleet.ConditionProvisioned).Message, "IP_SPACE_EXHAUSTED")
			assert.Equal(t, "QuotaExceeded", d.Status.Retry.Class)
			assert.Empty(t, d.Status.Instance.State, "an intent again, under its name")
			assert.Equal(t, nameP(1), d.Status.Instance.Name)
		}},
		{"an instance that vanishes before it is up backs off", RowRefused, viewOf(instance(1, provisioningState), gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, "Vanished", d.Status.Retry.Reason)
		}},
		{"a name conflict is looked into", RowAsk, viewOf(instance(1, ""), answered(1, errTaken)), asked(nameP(1))},
		{"a conflict with our own instance is an adoption", RowRunning, viewOf(instance(1, ""), found(1, runningState), func(v *View) {
			f := v.Facts[nameP(1)]
			f.CreateErr = errTaken
			v.Facts[nameP(1)] = f
		}), func(t *testing.T, d Decision) {
			assert.Equal(t, "Running", d.Status.Instance.State)
		}},
		{"a conflict with somebody else's instance is said and nothing is deleted", RowConflict, viewOf(instance(1, ""), found(1, runningState), func(v *View) {
			f := v.Facts[nameP(1)]
			f.Seen.Owner, f.CreateErr = "somebody", errTaken
		}), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, "NameConflict", condition(t, d, fleet.ConditionProvisioned).Reason)
			assert.Equal(t, "Permanent", d.Status.Retry.Class)
			assert.Equal(t, fleet.PhaseFailed, d.Status.Phase)
		}},
		{"another spec gets around a conflict under another name", RowCreate, viewOf(instance(1, ""), retry("Permanent", 1, -time.Hour), func(v *View) {
			v.Proxy.Status.Retry.Reason = provider.ReasonNameConflict
		}, gone(1), func(v *View) { v.Proxy.RotateTime = start.Add(-time.Minute) }), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
		}},
		{"a conflict that nobody can look into is tried again", RowRefused, viewOf(instance(1, ""), fact(1, Fact{CreateErr: errTaken, GetErr: errTransient})), func(t *testing.T, d Decision) {
			assert.Equal(t, "Transient", d.Status.Retry.Class)
		}},
		{"two instances are as many as there may be", RowCrowded, viewOf(found(1, terminatedState), found(2, stoppingState)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
		}},
		{"an intent is not forgotten because a listing lacks it", RowAsk, viewOf(instance(1, provisioningState)), asked(nameP(1))},
		{"an instance in a silent zone is left alone", RowUncertain, viewOf(instance(1, runningState), func(v *View) {
			v.Cloud.Partial, v.Cloud.Silent = true, map[string]bool{"r1-a": true}
		}), func(t *testing.T, d Decision) {
			assert.False(t, d.Status.Instance.Deleting)
			assert.Empty(t, d.Actions)
		}},
		{"one in another zone is asked for directly", RowAsk, viewOf(instance(1, runningState), func(v *View) {
			v.Cloud.Partial, v.Cloud.Silent = true, map[string]bool{"r1-b": true}
		}), asked(nameP(1))},
	}
}

// instanceRows: there is an instance.
func instanceRows() []planRow {
	young := func(v *View) {
		v.Proxy.Status.Instance.IntentTime, v.Proxy.Status.Instance.CreateTime = start.Add(-time.Minute), start.Add(-time.Minute)
		for i := range v.Listed {
			v.Listed[i].CreateTime = start.Add(-time.Minute)
		}
	}
	return []planRow{
		{"an instance that is coming up is waited for", RowProvisioning, viewOf(instance(1, provisioningState), listed(1, provisioningState), young), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, fleet.PhaseProvisioning, d.Status.Phase)
			assert.Equal(t, "Provisioning", condition(t, d, fleet.ConditionProvisioned).Reason)
		}},
		{"one that a listing shows as late is looked at first", RowAsk, viewOf(instance(1, provisioningState), listed(1, provisioningState)), asked(nameP(1))},
		{"one that is late is deleted and counted", RowProvisionTimeout, viewOf(instance(1, provisioningState), listed(1, provisioningState), found(1, provisioningState)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
			assert.True(t, d.Status.Instance.Deleting)
			assert.EqualValues(t, 1, d.Status.Retry.Attempts)
			assert.Equal(t, "ProvisionTimeout", condition(t, d, fleet.ConditionProvisioned).Reason)
		}},
		{"one that turns out to be up after all is kept", RowRunning, viewOf(instance(1, provisioningState), listed(1, provisioningState), found(1, runningState)), nil},
		{"after a late one the next comes when the back-off is over", RowBackOff, viewOf(instance(1, provisioningState), func(v *View) { v.Proxy.Status.Instance.Deleting = true }, retry("Transient", 1, time.Second), gone(1)), func(t *testing.T, d Decision) {
			assert.Nil(t, d.Status.Instance)
		}},
		{"and then under the next name", RowCreate, viewOf(instance(1, provisioningState), func(v *View) { v.Proxy.Status.Instance.Deleting = true }, retry("Transient", 1, 0), gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
			assert.EqualValues(t, 1, d.Status.Retry.Attempts, "until one is up")
		}},
		{"an instance by an older spec goes before it is up", RowOutdated, viewOf(instance(1, provisioningState), found(1, provisioningState), specChanged), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
		}},
		{"a running instance gets its address recorded and is served", RowRunning, viewOf(instance(1, provisioningState), listed(1, runningState), retry("Transient", 3, 0)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Equal(t, &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: 1, Since: start}, d.Status.Endpoint)
			assert.True(t, condition(t, d, fleet.ConditionProvisioned).Status)
			assert.Nil(t, d.Status.Retry)
			assert.Equal(t, fleet.PhaseRunning, d.Status.Phase)
			assert.Equal(t, EventRunning, lastEvent(d))
		}},
		{"a healthy instance is left alone", RowRunning, viewOf(serving(1)), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.True(t, condition(t, d, fleet.ConditionReady).Status)
		}},
		{"an instance without an address is not served, and says so", RowNoAddress, viewOf(serving(1), func(v *View) { v.Listed[0].Address = "" }), func(t *testing.T, d Decision) {
			assert.Nil(t, d.Status.Endpoint)
			c := condition(t, d, fleet.ConditionProvisioned)
			assert.Equal(t, "NoAddress", c.Reason)
			assert.False(t, c.Status)
		}},
		{"an instance with another address proves itself anew", RowRunning, viewOf(serving(1), func(v *View) { v.Listed[0].Address = "192.0.2.7" }), func(t *testing.T, d Decision) {
			assert.Equal(t, "192.0.2.7", d.Status.Endpoint.Host)
			assert.Equal(t, fleet.Health{}, d.Status.Health)
			assert.Equal(t, store.AllFields, d.Fields)
		}},
		{"a listing that is behind is not believed", RowAsk, viewOf(serving(1), func(v *View) { v.Listed = []provider.Instance{real(v, 1, provisioningState)} }), asked(nameP(1))},
		{"also of one that is within its time", RowAsk, viewOf(serving(1), func(v *View) { v.Listed = []provider.Instance{real(v, 1, provisioningState)} }, young), asked(nameP(1))},
		{"an unknown state is never acted upon", RowUnknown, viewOf(serving(1), specChanged, func(v *View) { v.Listed = []provider.Instance{real(v, 1, unknownState)} }), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
			assert.Nil(t, d.Status.Next)
		}},
		{"nor when its deletion was decided", RowUnknown, viewOf(instance(1, runningState), listed(1, unknownState), func(v *View) { v.Proxy.Status.Instance.Deleting = true }), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"a stopping instance is succeeded at once", RowSucceeded, viewOf(serving(1), func(v *View) { v.Listed = []provider.Instance{real(v, 1, stoppingState)} }), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
			assert.Nil(t, d.Status.Endpoint)
			assert.Equal(t, ReasonStopped, d.Why)
			assert.Equal(t, 2, d.Holds)
		}},
		{"a stopped instance is deleted and succeeded", RowSucceeded, viewOf(serving(1), func(v *View) { v.Listed = []provider.Instance{real(v, 1, terminatedState)} }, found(1, terminatedState)), func(t *testing.T, d Decision) {
			assert.ElementsMatch(t, []string{"create " + nameP(2) + " in r1-a", "delete " + nameP(1)}, actions(d))
		}},
		{"a stopped instance holds its place until it is gone", RowFull, viewOf(serving(1), lastPlace, func(v *View) { v.Listed = []provider.Instance{real(v, 1, terminatedState)} }, found(1, terminatedState)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
		}},
		{"an instance is gone only when Get says so", RowAsk, viewOf(serving(1), func(v *View) { v.Listed = nil }), asked(nameP(1))},
		{"an instance that is gone is succeeded", RowSucceeded, viewOf(serving(1), func(v *View) { v.Listed = nil }, gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
			assert.Equal(t, ReasonLost, d.Why)
			assert.Contains(t, []string{d.Status.Events[len(d.Status.Events)-2].Reason}, EventLost)
		}},
		{"a lost instance's successor takes over", RowRunning, viewOf(serving(1), successor(2, runningState), listed(2, runningState), provenNext(2), func(v *View) { v.Listed = v.Listed[1:] }, gone(1)), func(t *testing.T, d Decision) {
			assert.Equal(t, nameP(2), d.Status.Instance.Name)
			assert.Nil(t, d.Status.Next)
			assert.EqualValues(t, 2, d.Status.Endpoint.Incarnation)
			assert.True(t, d.Status.Health.Healthy)
			assert.Equal(t, store.AllFields, d.Fields)
		}},
		{"what was asked to go is asked again", RowDeleting, viewOf(instance(1, runningState), listed(1, runningState), func(v *View) { v.Proxy.Status.Instance.Deleting = true }), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"delete " + nameP(1)}, actions(d))
		}},
		{"but not twice in a run", RowDeleting, viewOf(instance(1, runningState), func(v *View) {
			v.Proxy.Status.Instance.Deleting = true
			i := real(v, 1, runningState)
			v.Facts[nameP(1)] = Fact{Seen: &i, Deleted: true}
		}), func(t *testing.T, d Decision) { assert.Empty(t, d.Actions) }},
		{"what is stopping on request is waited for", RowDeleting, viewOf(instance(1, runningState), listed(1, stoppingState), func(v *View) { v.Proxy.Status.Instance.Deleting = true }), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions)
		}},
		{"a delete that was refused is not taken for one that worked", RowDeleting, viewOf(instance(1, runningState), listed(1, runningState), func(v *View) { v.Proxy.Status.Instance.Deleting = true }, fact(1, Fact{DeleteErr: errPermanent})), func(t *testing.T, d Decision) {
			assert.Empty(t, d.Actions, "it waits a moment")
			assert.Equal(t, nameP(1), d.Status.Instance.Name)
			assert.Equal(t, "DeleteFailed", d.Status.Retry.Reason)
			assert.Contains(t, []string{d.Status.Events[0].Reason}, EventDeleteFailed)
		}},
		{"somebody else's instance under our name is not ours to use", RowSucceeded, viewOf(serving(1), func(v *View) { v.Listed = nil }, found(1, runningState), func(v *View) {
			v.Facts[nameP(1)].Seen.UID = "theirs"
		}), func(t *testing.T, d Decision) {
			assert.Equal(t, []string{"create " + nameP(2) + " in r1-a"}, actions(d))
		}},
	}
}

// TestALostStatusAsksForWhatListingsMayHide: leases go to one incarnation, and a listing shows a later one.
func TestALostStatusAsksForWhatListingsMayHide(t *testing.T) {
	t.Parallel()
	v := viewOf(listed(5, runningState), func(v *View) {
		v.Proxy.Status = fleet.Status{}
		v.Entry = &fleet.Entry{Incarnation: 2, DrainingBelow: 2}
	})
	var asked []string
	for _, ref := range Plan(v).Ask.Get {
		asked = append(asked, ref.Name)
	}
	for _, n := range []int64{1, 2, 3, 4, 6, 7} {
		assert.Contains(t, asked, nameP(n), "incarnation %d", n)
	}
}
