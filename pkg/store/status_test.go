package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// TestEveryConditionIsKept compares the list with the constants: a condition that is not in the list
// would be lost on its way to the store.
func TestEveryConditionIsKept(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../fleet/condition.go", nil, 0)
	require.NoError(t, err)
	constants := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil {
			if name, ok := v.Type.(*ast.Ident); ok && name.Name == "ConditionType" {
				constants += len(v.Names)
			}
		}
		return true
	})
	seen := map[fleet.ConditionType]bool{}
	for _, c := range store.ConditionTypes() {
		assert.False(t, seen[c], c)
		seen[c] = true
	}
	assert.Len(t, seen, constants)
}

func conditions(reason string, types ...fleet.ConditionType) (out fleet.Conditions) {
	for _, c := range types {
		out.Set(fleet.Condition{Type: c, Reason: reason}, start)
	}
	return out
}

func TestAWriteTakesTheFieldsOfItsOwner(t *testing.T) {
	t.Parallel()
	all := store.ConditionTypes()
	have := fleet.Status{UID: "have", Health: fleet.Health{Detail: "have"}, NextHealth: fleet.Health{Detail: "have"}, Conditions: conditions("Have", all...)}
	want := fleet.Status{UID: "want", Health: fleet.Health{Detail: "want"}, NextHealth: fleet.Health{Detail: "want"}, Conditions: conditions("Want", all...)}
	for fields, owned := range map[store.StatusFields]struct {
		uid, health string
		conditions  map[fleet.ConditionType]bool
	}{
		store.AllFields:       {"want", "want", map[fleet.ConditionType]bool{fleet.ConditionAccepted: true, fleet.ConditionProvisioned: true, fleet.ConditionHealthy: true, fleet.ConditionReady: true, fleet.ConditionExitAddressShared: true}},
		store.ReconcileFields: {"want", "have", map[fleet.ConditionType]bool{fleet.ConditionAccepted: true, fleet.ConditionProvisioned: true, fleet.ConditionReady: true, fleet.ConditionExitAddressShared: true}},
		store.HealthFields:    {"have", "want", map[fleet.ConditionType]bool{fleet.ConditionHealthy: true, fleet.ConditionReady: true}},
	} {
		got := store.MergeStatus(have, want, fields)
		assert.Equal(t, owned.uid, got.UID)
		assert.Equal(t, owned.health, got.Health.Detail)
		assert.Equal(t, owned.health, got.NextHealth.Detail)
		assert.Len(t, got.Conditions, len(all))
		for _, c := range got.Conditions {
			assert.Equal(t, owned.conditions[c.Type], c.Reason == "Want", "%d %s", fields, c.Type)
		}
	}
	assert.Equal(t, conditions("Have", all...), have.Conditions, "what was there is not touched")
}

func TestAConditionThatItsOwnerDroppedGoesAndAnothersStays(t *testing.T) {
	t.Parallel()
	have := fleet.Status{Conditions: conditions("Have", fleet.ConditionAccepted, fleet.ConditionHealthy, fleet.ConditionReady)}
	got := store.MergeStatus(have, fleet.Status{}, store.ReconcileFields)
	assert.Equal(t, conditions("Have", fleet.ConditionHealthy), got.Conditions)
	got = store.MergeStatus(have, fleet.Status{}, store.HealthFields)
	assert.Equal(t, conditions("Have", fleet.ConditionAccepted), got.Conditions)
	got = store.MergeStatus(fleet.Status{}, have, store.HealthFields)
	assert.Equal(t, conditions("Have", fleet.ConditionHealthy, fleet.ConditionReady), got.Conditions)
}

func TestOnesOwnWriteIsKnownWhateverFormItComesIn(t *testing.T) {
	t.Parallel()
	local := start.Add(999 * time.Nanosecond).In(time.FixedZone("east", 3600))
	mine := fleet.Status{
		Instance: &fleet.Instance{IntentTime: local}, Endpoint: &fleet.StatusEndpoint{Since: local}, Drain: &fleet.Drain{Since: local, Deadline: local},
		Retry: &fleet.Retry{NotBefore: local}, Health: fleet.Health{Tick: local, LastProbeTime: local, UnhealthySince: local},
		Events: []fleet.Event{{Time: local}}, Conditions: conditions("R", fleet.ConditionReady, fleet.ConditionAccepted),
	}
	stored := fleet.Status{
		Instance: &fleet.Instance{IntentTime: start}, Endpoint: &fleet.StatusEndpoint{Since: start}, Drain: &fleet.Drain{Since: start, Deadline: start},
		Retry: &fleet.Retry{NotBefore: start}, Health: fleet.Health{Tick: start, LastProbeTime: start, UnhealthySince: start},
		Events: []fleet.Event{{Time: start}}, Conditions: conditions("R", fleet.ConditionAccepted, fleet.ConditionReady),
	}
	assert.Equal(t, stored, store.NormalStatus(mine))
	assert.True(t, store.HasStatus(stored, mine, store.AllFields))
	assert.Equal(t, local, mine.Instance.IntentTime, "what was compared is not changed")
	assert.Equal(t, fleet.ConditionReady, mine.Conditions[0].Type)
	mine.UID = "other"
	assert.False(t, store.HasStatus(stored, mine, store.AllFields))
	assert.False(t, store.HasStatus(stored, mine, store.ReconcileFields))
	assert.True(t, store.HasStatus(stored, mine, store.HealthFields), "it is not health's to write")
	assert.Equal(t, fleet.Status{}, store.NormalStatus(fleet.Status{Events: []fleet.Event{}, Conditions: fleet.Conditions{}}))
}

// TestNoTimeOfAStatusIsForgotten sets every time there is, wherever it is.
func TestNoTimeOfAStatusIsForgotten(t *testing.T) {
	t.Parallel()
	var s fleet.Status
	local := start.Add(999 * time.Nanosecond).In(time.FixedZone("east", 3600))
	eachTime(reflect.ValueOf(&s).Elem(), func(v reflect.Value) { v.Set(reflect.ValueOf(local)) })
	s = store.NormalStatus(s)
	times := 0
	eachTime(reflect.ValueOf(&s).Elem(), func(v reflect.Value) {
		times++
		assert.Equal(t, start, v.Interface())
	})
	assert.Greater(t, times, 10)
}

// eachTime calls f with all times in v, making what is nil or empty.
func eachTime(v reflect.Value, f func(reflect.Value)) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		f(v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		eachTime(v.Elem(), f)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		eachTime(v.Index(0), f)
	case reflect.Struct:
		for i := range v.NumField() {
			eachTime(v.Field(i), f)
		}
	}
}
