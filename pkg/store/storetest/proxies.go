package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func proxyCases() []testCase {
	return []testCase{
		{"a created document is read back", createdIsReadBack},
		{"a name is given once", nameIsGivenOnce},
		{"an absent document is not found", absentIsNotFound},
		{"max leases left out, zero and five survive", maxLeasesSurvives},
		{"all documents are listed by name", allAreListed},
		{"a broken document among good ones is listed with its faults", brokenIsListed},
		{"an edit changes what it names and nothing else", editChangesWhatItNames},
		{"an edit of an old version conflicts", editOfOldVersionConflicts},
		{"a label with dots and slashes survives", oddLabelsSurvive},
		{"removing an old version conflicts and removing twice succeeds", removeIsConditional},
		{"a document made again is another one", madeAgainIsAnother},
	}
}

func createdIsReadBack(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	require.Equal(t, "a", p.Name)
	require.Equal(t, map[string]string{"pool": "news"}, p.Labels)
	require.Equal(t, fleet.External, p.Spec.Mode)
	require.Empty(t, p.Broken)
	require.False(t, p.CreateTime.IsZero())
	require.Equal(t, p, get(t, h.Store, "a"))
	require.Equal(t, p.CreateTime, p.CreateTime.UTC().Truncate(time.Microsecond))
}

func nameIsGivenOnce(t *testing.T, h Harness) {
	create(t, h.Store, "a")
	_, err := h.Store.CreateProxy(t.Context(), "a", store.Edit{Spec: external(nil)})
	require.ErrorIs(t, err, store.ErrExists)
}

func absentIsNotFound(t *testing.T, h Harness) {
	_, err := h.Store.GetProxy(t.Context(), "none")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = h.Store.EditProxy(t.Context(), "none", store.Edit{Spec: external(nil)}, time.Time{})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = h.Store.EditProxy(t.Context(), "none", store.Edit{Spec: external(nil)}, at(0))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = h.Store.WriteStatus(t.Context(), fleet.Proxy{Name: "none", UpdateTime: at(0)}, store.ReconcileFields)
	require.ErrorIs(t, err, store.ErrConflict)
}

func maxLeasesSurvives(t *testing.T, h Harness) {
	for name, want := range map[string]*int32{"absent": nil, "zero": ptr(0), "five": ptr(5)} {
		spec := external(nil)
		if want != nil {
			spec["maxLeases"] = int64(*want)
		}
		p, err := h.Store.CreateProxy(t.Context(), name, store.Edit{Spec: spec})
		require.NoError(t, err)
		require.Equal(t, want, p.Spec.MaxLeases, name)
		p, err = h.Store.EditProxy(t.Context(), name, store.Edit{Spec: fleet.Encode(p.Spec)}, p.UpdateTime)
		require.NoError(t, err)
		require.Equal(t, want, p.Spec.MaxLeases, name)
		require.Equal(t, want, get(t, h.Store, name).Spec.MaxLeases, name)
	}
}

func ptr(n int32) *int32 { return &n }

func allAreListed(t *testing.T, h Harness) {
	for _, name := range []string{"b", "a-2", "a", "c"} {
		create(t, h.Store, name)
	}
	list, err := h.Store.ListProxies(t.Context())
	require.NoError(t, err)
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
		require.Equal(t, get(t, h.Store, p.Name), p)
	}
	require.Equal(t, []string{"a", "a-2", "b", "c"}, names)
}

func brokenIsListed(t *testing.T, h Harness) {
	create(t, h.Store, "good")
	h.PutRaw("typo", map[string]any{"spec": external(map[string]any{"maxLease": 3})})
	h.PutRaw("types", map[string]any{"labels": "x", "spec": map[string]any{"mode": 7, "endpoint": []any{1}}, "deleteTime": "soon"})
	h.PutRaw("none", map[string]any{})
	h.PutRaw("scalar", map[string]any{"spec": 5, "status": "lost", "colour": "red"})
	list, err := h.Store.ListProxies(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 5)
	for _, p := range list {
		require.Equal(t, p.Name == "good", len(p.Broken) == 0, p.Name)
	}
	require.ErrorContains(t, get(t, h.Store, "typo").Broken, "spec.maxLease")
	require.Equal(t, "proxy.example.net", get(t, h.Store, "typo").Spec.Endpoint.Host, "the rest is read")
	for _, path := range []string{"metadata.labels", "spec.mode", "spec.endpoint", "deleteTime"} {
		require.ErrorContains(t, get(t, h.Store, "types").Broken, path)
	}
}

func editChangesWhatItNames(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.Status.UID = "u"
	p, err := h.Store.WriteStatus(t.Context(), p, store.ReconcileFields)
	require.NoError(t, err)
	p, err = h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"x": "y"}}, p.UpdateTime)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x": "y"}, p.Labels, "labels are replaced whole")
	require.Equal(t, fleet.External, p.Spec.Mode)
	p, err = h.Store.EditProxy(t.Context(), "a", store.Edit{Spec: external(map[string]any{"paused": true})}, time.Time{})
	require.NoError(t, err)
	require.True(t, p.Spec.Paused)
	p, err = h.Store.EditProxy(t.Context(), "a", store.Edit{DeleteTime: at(1), RotateTime: at(time.Hour)}, time.Time{})
	require.NoError(t, err)
	require.Equal(t, at(0), p.DeleteTime)
	p, err = h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{}}, time.Time{})
	require.NoError(t, err)
	require.Empty(t, p.Labels)
	require.Equal(t, "u", p.Status.UID)
	require.False(t, p.DeleteTime.IsZero())
	require.False(t, p.RotateTime.IsZero())
}

func editOfOldVersionConflicts(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	_, err := h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"n": "1"}}, p.UpdateTime)
	require.NoError(t, err)
	_, err = h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"n": "2"}}, p.UpdateTime)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, "1", get(t, h.Store, "a").Labels["n"])
}

func oddLabelsSurvive(t *testing.T, h Harness) {
	labels := map[string]string{"example.com/team.name": "a.b", "x_y": ""}
	p, err := h.Store.CreateProxy(t.Context(), "a", store.Edit{Labels: labels, Spec: external(nil)})
	require.NoError(t, err)
	require.Equal(t, labels, p.Labels)
}

func removeIsConditional(t *testing.T, h Harness) {
	old := create(t, h.Store, "a")
	p, err := h.Store.EditProxy(t.Context(), "a", store.Edit{DeleteTime: at(0)}, time.Time{})
	require.NoError(t, err)
	require.ErrorIs(t, h.Store.RemoveProxy(t.Context(), old), store.ErrConflict)
	require.NoError(t, h.Store.RemoveProxy(t.Context(), p))
	require.NoError(t, h.Store.RemoveProxy(t.Context(), p))
	_, err = h.Store.GetProxy(t.Context(), "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func madeAgainIsAnother(t *testing.T, h Harness) {
	first := create(t, h.Store, "a")
	require.NoError(t, h.Store.RemoveProxy(t.Context(), first))
	second := create(t, h.Store, "a")
	require.True(t, second.CreateTime.After(first.CreateTime))
	require.NotEqual(t, fleet.UID("db", "proxies/a", first.CreateTime), fleet.UID("db", "proxies/a", second.CreateTime))
}

func statusCases() []testCase {
	return []testCase{
		{"a whole status survives", wholeStatusSurvives},
		{"spec and status writes never lose each other", specAndStatusDoNotMeet},
		{"each owner writes its own fields", ownersDoNotMeet},
		{"fields that became empty are removed", emptiedFieldsGo},
		{"a status write of an old version conflicts", oldStatusConflicts},
		{"one's own repeated status write succeeds", repeatedStatusSucceeds},
		{"a lost status leads to the same identity", lostStatusIsRebuilt},
		{"one of many writers of the same version wins", oneWriterWins},
	}
}

// fullStatus has every field set.
func fullStatus() fleet.Status {
	s := fleet.Status{
		UID: "uid", Phase: fleet.PhaseReplacing, Accepted: &fleet.Accepted{Mode: fleet.Managed, Provider: "mock"}, Incarnation: 4,
		Instance: &fleet.Instance{Name: "i", Incarnation: 3, Zone: "z", State: "Running", Address: "192.0.2.1", SpecHash: "h", Operation: "op", IntentTime: at(1 * time.Second), CreateTime: at(2 * time.Second), Deleting: true},
		Next:     &fleet.Instance{Name: "n", Incarnation: 4},
		Endpoint: &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: 3, Since: at(3 * time.Second)},
		Drain:    &fleet.Drain{Reason: "r", Since: at(4 * time.Second), Deadline: at(5 * time.Second), Incarnation: 3}, Replacing: "MaxAge",
		Health:     fleet.Health{Incarnation: 3, Tick: at(6 * time.Second), LastProbeTime: at(7 * time.Second), Healthy: true, Outcome: fleet.OutcomeOK, Detail: "d", LatencyMs: 12, ConsecutiveSuccesses: 1, ConsecutiveFailures: 2, UnhealthySince: at(8 * time.Second), ExitAddress: "198.51.100.1"},
		NextHealth: fleet.Health{Incarnation: 4, Outcome: fleet.OutcomeReset},
		Retry:      &fleet.Retry{Attempts: 2, NotBefore: at(9 * time.Second), Class: "QuotaExceeded", Reason: "R", Message: "m", SpecHash: "h"},
	}
	s.AddEvent(at(10*time.Second), "Created", "m")
	for _, c := range []fleet.ConditionType{fleet.ConditionAccepted, fleet.ConditionProvisioned, fleet.ConditionHealthy, fleet.ConditionReady, fleet.ConditionExitAddressShared} {
		s.Conditions.Set(fleet.Condition{Type: c, Status: true, Reason: "Fine", Message: "m"}, at(11*time.Second))
	}
	return s
}

func wholeStatusSurvives(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.Status = fullStatus()
	_, err := h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	require.Equal(t, store.NormalStatus(fullStatus()), store.NormalStatus(get(t, h.Store, "a").Status))
}

func specAndStatusDoNotMeet(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	edited, err := h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"n": "2"}, Spec: external(map[string]any{"maxLeases": int64(9)})}, time.Time{})
	require.NoError(t, err)
	p.Status.UID = "u"
	_, err = h.Store.WriteStatus(t.Context(), p, store.ReconcileFields)
	require.ErrorIs(t, err, store.ErrConflict, "it was decided on an older spec")
	edited.Status.UID = "u"
	_, err = h.Store.WriteStatus(t.Context(), edited, store.ReconcileFields)
	require.NoError(t, err)
	_, err = h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"n": "3"}}, time.Time{})
	require.NoError(t, err)
	got := get(t, h.Store, "a")
	require.Equal(t, "u", got.Status.UID)
	require.Equal(t, "3", got.Labels["n"])
	require.EqualValues(t, 9, *got.Spec.MaxLeases)
}

func ownersDoNotMeet(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.Status = fullStatus()
	p, err := h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	p.Status = fleet.Status{Health: fleet.Health{Incarnation: 9}}
	p.Status.Conditions.Set(fleet.Condition{Type: fleet.ConditionHealthy, Reason: "Bad"}, at(time.Hour))
	_, err = h.Store.WriteStatus(t.Context(), p, store.HealthFields)
	require.NoError(t, err)
	got := get(t, h.Store, "a")
	require.EqualValues(t, 9, got.Status.Health.Incarnation)
	require.Zero(t, got.Status.NextHealth)
	require.Equal(t, "uid", got.Status.UID)
	require.NotNil(t, got.Status.Instance)
	healthy, _ := got.Status.Conditions.Get(fleet.ConditionHealthy)
	require.Equal(t, "Bad", healthy.Reason)
	_, ready := got.Status.Conditions.Get(fleet.ConditionReady)
	require.False(t, ready, "health owns Ready, too")
	accepted, _ := got.Status.Conditions.Get(fleet.ConditionAccepted)
	require.True(t, accepted.Status)

	got.Status = fleet.Status{UID: "new"}
	_, err = h.Store.WriteStatus(t.Context(), got, store.ReconcileFields)
	require.NoError(t, err)
	got = get(t, h.Store, "a")
	require.Equal(t, "new", got.Status.UID)
	require.Nil(t, got.Status.Instance)
	require.EqualValues(t, 9, got.Status.Health.Incarnation)
	_, healthyStays := got.Status.Conditions.Get(fleet.ConditionHealthy)
	require.True(t, healthyStays)
}

func emptiedFieldsGo(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.Status = fullStatus()
	p, err := h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	p.Status = fleet.Status{}
	_, err = h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	require.Equal(t, fleet.Status{}, store.NormalStatus(get(t, h.Store, "a").Status))
}

func oldStatusConflicts(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	first, second := p, p
	first.Status.UID, second.Status.UID = "1", "2"
	_, err := h.Store.WriteStatus(t.Context(), first, store.ReconcileFields)
	require.NoError(t, err)
	_, err = h.Store.WriteStatus(t.Context(), second, store.ReconcileFields)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, "1", get(t, h.Store, "a").Status.UID)
}

func repeatedStatusSucceeds(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.Status = fullStatus()
	written, err := h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	again, err := h.Store.WriteStatus(t.Context(), p, store.AllFields) // as the client does when an answer is lost
	require.NoError(t, err)
	require.Equal(t, written.UpdateTime, again.UpdateTime)
	again.Status.UID = "next"
	_, err = h.Store.WriteStatus(t.Context(), again, store.ReconcileFields)
	require.NoError(t, err, "the version that it returned is the current one")
}

func lostStatusIsRebuilt(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	uid := fleet.UID("db", "proxies/a", p.CreateTime)
	p.Status.UID = uid
	_, err := h.Store.WriteStatus(t.Context(), p, store.ReconcileFields)
	require.NoError(t, err)
	h.PutRaw("a", map[string]any{"spec": external(nil), "status": "wiped by hand"})
	got := get(t, h.Store, "a")
	require.Empty(t, got.Broken)
	require.Empty(t, got.Status.UID)
	require.Equal(t, uid, fleet.UID("db", "proxies/a", got.CreateTime))
	got.Status.UID = uid
	_, err = h.Store.WriteStatus(t.Context(), got, store.ReconcileFields)
	require.NoError(t, err)
	require.Equal(t, uid, get(t, h.Store, "a").Status.UID)
}

func oneWriterWins(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	const writers = 8
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			mine := p
			mine.Status.UID = fmt.Sprint(i)
			_, errs[i] = h.Store.WriteStatus(t.Context(), mine, store.ReconcileFields)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, store.ErrConflict)
	}
	require.Equal(t, 1, won)
}
