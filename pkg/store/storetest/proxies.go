package storetest

import (
	"maps"
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
		{"an edit that changes nothing keeps the version", idleEditKeepsVersion},
		{"an edit of nothing returns the document and keeps its condition", editOfNothing},
		{"times are kept in microseconds, rounded down, in UTC", timesAreMicroseconds},
		{"a name that no document can have is not found", impossibleNames},
		{"what callers change in their copies stays theirs", copiesAreTheirs},
		{"what callers change after a write stays theirs", writtenIsCopied},
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

func idleEditKeepsVersion(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	again, err := h.Store.EditProxy(t.Context(), "a", store.Edit{Labels: p.Labels, Spec: external(nil)}, p.UpdateTime)
	require.NoError(t, err)
	require.Equal(t, p, again)
}

func editOfNothing(t *testing.T, h Harness) {
	p := create(t, h.Store, "a")
	for _, version := range []time.Time{{}, p.UpdateTime} {
		got, err := h.Store.EditProxy(t.Context(), "a", store.Edit{}, version)
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	_, err := h.Store.EditProxy(t.Context(), "a", store.Edit{}, p.UpdateTime.Add(-time.Second))
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = h.Store.EditProxy(t.Context(), "none", store.Edit{}, time.Time{})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func timesAreMicroseconds(t *testing.T, h Harness) {
	create(t, h.Store, "a")
	odd := at(999 * time.Nanosecond).In(time.FixedZone("west", -5*3600))
	p, err := h.Store.EditProxy(t.Context(), "a", store.Edit{DeleteTime: odd, RotateTime: odd}, time.Time{})
	require.NoError(t, err)
	require.Equal(t, at(0), p.DeleteTime)
	require.Equal(t, at(0), p.RotateTime)
	p.Status.Drain = &fleet.Drain{Since: odd}
	p.Status.Health.Tick = odd
	_, err = h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	got := get(t, h.Store, "a")
	require.Equal(t, at(0), got.Status.Drain.Since)
	require.Equal(t, at(0), got.Status.Health.Tick)
	require.Zero(t, got.Status.Drain.Deadline, "no time stays none")
	require.Zero(t, got.Status.Health.LastProbeTime)
	require.Equal(t, got.UpdateTime, got.UpdateTime.UTC().Truncate(time.Microsecond))
}

func impossibleNames(t *testing.T, h Harness) {
	for _, name := range []string{"", "a/b", "/"} {
		_, err := h.Store.GetProxy(t.Context(), name)
		require.ErrorIs(t, err, store.ErrNotFound, "%q", name)
		_, err = h.Store.EditProxy(t.Context(), name, store.Edit{Spec: external(nil)}, time.Time{})
		require.ErrorIs(t, err, store.ErrNotFound, "%q", name)
		_, err = h.Store.GetSlot(t.Context(), "a/b", 0)
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = h.Store.GetRequest(t.Context(), name)
		require.ErrorIs(t, err, store.ErrNotFound, "%q", name)
	}
}

// fullSpec has every field set.
func fullSpec() map[string]any {
	return map[string]any{
		"mode": "Managed", "provider": "mock", "paused": true, "maxLeases": int64(3),
		"placement": map[string]any{"region": "r", "zone": "z", "zones": []any{"z1", "z2"}, "machineType": "m", "spot": true},
		"cloudInit": map[string]any{"inline": "i", "secretRef": map[string]any{"name": "n", "key": "k"}},
		"endpoint":  map[string]any{"host": "h", "port": int64(1), "credentialsSecretRef": map[string]any{"name": "n", "key": "k"}},
		"healthCheck": map[string]any{
			"url": "u", "expectedStatus": int64(200), "bodyContains": "b", "intervalSeconds": int64(60), "timeoutSeconds": int64(1),
			"healthyThreshold": int64(1), "unhealthyThreshold": int64(1), "insecureSkipVerify": true, "onBlocked": "Ignore",
			"exitAddressFrom": "header", "exitAddressHeader": "X",
		},
		"lifecycle": map[string]any{"provisionTimeout": "1m0s", "replaceUnhealthyAfter": "2m0s", "maxAge": "3m0s", "drainTimeout": "4m0s"},
	}
}

func copiesAreTheirs(t *testing.T, h Harness) {
	p, err := h.Store.CreateProxy(t.Context(), "a", store.Edit{Labels: map[string]string{"k": "v"}, Spec: fullSpec()})
	require.NoError(t, err)
	require.Empty(t, p.Broken)
	requireFull(t, p.Spec)
	p.Status = fullStatus()
	_, err = h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	want := picture(t, get(t, h.Store, "a"))
	mine := get(t, h.Store, "a")
	spoil(&mine)
	require.NotEqual(t, want, picture(t, mine))
	require.Equal(t, want, picture(t, get(t, h.Store, "a")))
	list, err := h.Store.ListProxies(t.Context())
	require.NoError(t, err)
	spoil(&list[0])
	require.Equal(t, want, picture(t, get(t, h.Store, "a")))
}

func writtenIsCopied(t *testing.T, h Harness) {
	labels, spec := map[string]string{"k": "v"}, fullSpec()
	p, err := h.Store.CreateProxy(t.Context(), "a", store.Edit{Labels: labels, Spec: spec})
	require.NoError(t, err)
	labels["k"] = "changed"
	maps.Copy(spec["placement"].(map[string]any), map[string]any{"zone": "changed"})
	require.Equal(t, p, get(t, h.Store, "a"))
	// One more edit, so that a store that kept the maps would read them again.
	p, err = h.Store.EditProxy(t.Context(), "a", store.Edit{RotateTime: at(0)}, time.Time{})
	require.NoError(t, err)
	require.Equal(t, "v", p.Labels["k"])
	require.Equal(t, "z", p.Spec.Placement.Zone)
	p.Status = fullStatus()
	_, err = h.Store.WriteStatus(t.Context(), p, store.AllFields)
	require.NoError(t, err)
	want := picture(t, get(t, h.Store, "a"))
	spoil(&p)
	require.Equal(t, want, picture(t, get(t, h.Store, "a")))
}
