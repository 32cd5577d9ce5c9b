package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func statusCases() []testCase {
	return []testCase{
		{"a whole status survives", wholeStatusSurvives},
		{"spec and status writes never lose each other", specAndStatusDoNotMeet},
		{"writers of labels, spec, status and health lose nothing of each other", writersTakeTurns},
		{"each owner writes its own fields", ownersDoNotMeet},
		{"a status write that changes nothing keeps the version", idleStatusKeepsVersion},
		{"a write that names no version conflicts", statusNeedsAVersion},
		{"a status survives edits and faults of what people write", statusSurvivesFaults},
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
		Next:     &fleet.Instance{Name: "n", Incarnation: 4, Zone: "z2", State: "Provisioning", Address: "192.0.2.2", SpecHash: "h2", Operation: "op2", IntentTime: at(20 * time.Second), CreateTime: at(21 * time.Second), Deleting: true},
		Endpoint: &fleet.StatusEndpoint{Host: "192.0.2.1", Port: 3128, Incarnation: 3, Since: at(3 * time.Second)},
		Drain:    &fleet.Drain{Reason: "r", Since: at(4 * time.Second), Deadline: at(5 * time.Second), Incarnation: 3}, Replacing: "MaxAge",
		Health:     fleet.Health{Incarnation: 3, Tick: at(6 * time.Second), LastProbeTime: at(7 * time.Second), Healthy: true, Outcome: fleet.OutcomeOK, Detail: "d", LatencyMs: 12, ConsecutiveSuccesses: 1, ConsecutiveFailures: 2, UnhealthySince: at(8 * time.Second), ExitAddress: "198.51.100.1"},
		NextHealth: fleet.Health{Incarnation: 4, Tick: at(26 * time.Second), LastProbeTime: at(27 * time.Second), Healthy: true, Outcome: fleet.OutcomeReset, Detail: "e", LatencyMs: 13, ConsecutiveSuccesses: 3, ConsecutiveFailures: 4, UnhealthySince: at(28 * time.Second), ExitAddress: "198.51.100.2"},
		Retry:      &fleet.Retry{Attempts: 2, NotBefore: at(9 * time.Second), Class: "QuotaExceeded", Reason: "R", Message: "m", SpecHash: "h"},
	}
	s.AddEvent(at(10*time.Second), "Created", "m")
	for _, c := range store.ConditionTypes() {
		s.Conditions.Set(fleet.Condition{Type: c, Status: true, Reason: "Fine", Message: "m"}, at(11*time.Second))
	}
	return s
}

func wholeStatusSurvives(t *testing.T, h Harness) {
	requireFull(t, fullStatus())
	p := create(t, h.Store, "a")
	p.Status = fullStatus()
	slices.Reverse(p.Status.Conditions)
	written, err := h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	got := get(t, h.Store, "a")
	require.Equal(t, store.NormalStatus(fullStatus()), got.Status, "stores return the normal form")
	require.Equal(t, written.UpdateTime, got.UpdateTime)
	require.True(t, got.UpdateTime.After(p.UpdateTime))
}

func idleStatusKeepsVersion(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.Status = fullStatus()
	first, err := h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	for _, fields := range []store.StatusFields{store.ReconcileFields, store.HealthFields, store.AllFields} {
		again, err := h.Store.WriteStatus(t.Context(), first, fields)
		require.NoError(t, err)
		require.Equal(t, first.UpdateTime, again.UpdateTime)
		require.Equal(t, first.UpdateTime, get(t, h.Store, "a").UpdateTime)
	}
}

func statusNeedsAVersion(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.UpdateTime = time.Time{}
	p.Status.UID = "u"
	_, err := h.Store.WriteStatus(t.Context(), p, store.ReconcileFields)
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorIs(t, h.Store.RemoveProxy(t.Context(), p), store.ErrConflict)
	require.Empty(t, get(t, h.Store, "a").Status.UID)
}

// writersTakeTurns has people, reconcile and health write at once, each again after a conflict, as they
// do.
func writersTakeTurns(t *testing.T, h Harness) {
	create(t, h.Store, "a")
	const turns = 10
	status := func(fields store.StatusFields, change func(*fleet.Status, int)) func() error {
		return func() error {
			for n := range turns {
				for {
					p, err := h.Store.GetProxy(t.Context(), "a")
					if err != nil {
						return err
					}
					change(&p.Status, n)
					_, err = h.Store.WriteStatus(t.Context(), p, fields)
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrConflict) {
						return err
					}
				}
			}
			return nil
		}
	}
	writers := []func() error{
		status(store.ReconcileFields, func(s *fleet.Status, n int) { s.Incarnation, s.UID = int64(n+1), fmt.Sprint(n) }),
		status(store.HealthFields, func(s *fleet.Status, n int) { s.Health.Incarnation = int64(n + 1) }),
		func() error {
			for n := range turns {
				spec := external(map[string]any{"maxLeases": int64(n + 1)})
				if _, err := h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"n": fmt.Sprint(n)}, Spec: spec}, time.Time{}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	errs := make([]error, len(writers))
	var wg sync.WaitGroup
	for i, w := range writers {
		wg.Go(func() { errs[i] = w() })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	p := get(t, h.Store, "a")
	require.EqualValues(t, turns, p.Status.Incarnation)
	require.EqualValues(t, turns, p.Status.Health.Incarnation)
	require.EqualValues(t, turns, *p.Spec.MaxLeases)
	require.Equal(t, fmt.Sprint(turns-1), p.Labels["n"])
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

func statusSurvivesFaults(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	p.Status = fullStatus()
	_, err := h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	want := get(t, h.Store, "a").Status
	p, err = h.Store.EditProxy(t.Context(), "a", store.Edit{Spec: map[string]any{"mode": "Odd", "maxLeases": "many"}}, time.Time{})
	require.NoError(t, err)
	require.NotEmpty(t, p.Broken)
	require.Equal(t, want, p.Status)
	p.Status.UID = "other"
	_, err = h.Store.WriteStatus(t.Context(), p, store.ReconcileFields)
	require.NoError(t, err, "a faulty document is told so in its status")
	got := get(t, h.Store, "a")
	require.Equal(t, "other", got.Status.UID)
	require.Equal(t, p.Broken, got.Broken)
}
