package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLastTransitionTimeMovesOnlyWhenTheStatusFlips(t *testing.T) {
	t.Parallel()
	var c Conditions
	at := func(minute int) time.Time { return time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC) }
	set := func(minute int, status bool, reason, message string) bool {
		return c.Set(Condition{Type: ConditionHealthy, Status: status, Reason: reason, Message: message, LastTransitionTime: at(59)}, at(minute))
	}
	moved := func() time.Time {
		got, ok := c.Get(ConditionHealthy)
		assert.True(t, ok)
		return got.LastTransitionTime
	}
	assert.True(t, set(1, true, "ok", "fine"), "new")
	assert.Equal(t, at(1), moved(), "the caller's own time does not count")
	assert.False(t, set(2, true, "ok", "fine"), "nothing changed")
	assert.Equal(t, at(1), moved())
	assert.True(t, set(3, true, "ok", "still fine"), "another message is a change")
	assert.Equal(t, at(1), moved(), "but no transition")
	assert.True(t, set(4, true, "better", "still fine"), "another reason is a change")
	assert.Equal(t, at(1), moved(), "but no transition")
	assert.True(t, set(5, false, "better", "still fine"), "flipped")
	assert.Equal(t, at(5), moved())
	assert.True(t, set(6, true, "ok", "fine"), "flipped back")
	assert.Equal(t, at(6), moved())
	assert.Len(t, c, 1, "unique by type")
}

func TestTransitionTimesAreWhatStoresKeep(t *testing.T) {
	t.Parallel()
	var c Conditions
	c.Set(Condition{Type: ConditionReady}, time.Date(2030, 1, 1, 1, 0, 0, 123456789, time.FixedZone("x", 3600)))
	got, _ := c.Get(ConditionReady)
	assert.Equal(t, time.Date(2030, 1, 1, 0, 0, 0, 123456000, time.UTC), got.LastTransitionTime)
}

func TestConditionsAreSetAndDroppedByType(t *testing.T) {
	t.Parallel()
	var c Conditions
	_, ok := c.Get(ConditionReady)
	assert.False(t, ok)
	for _, each := range []ConditionType{ConditionAccepted, ConditionReady, ConditionHealthy} {
		c.Set(Condition{Type: each, Status: true}, time.Unix(1, 0))
	}
	c.Set(Condition{Type: ConditionReady, Status: false, Reason: "Paused"}, time.Unix(2, 0))
	assert.Equal(t, []ConditionType{ConditionAccepted, ConditionReady, ConditionHealthy}, []ConditionType{c[0].Type, c[1].Type, c[2].Type}, "in the order of their first setting")
	assert.True(t, c.Drop(ConditionReady))
	assert.False(t, c.Drop(ConditionReady), "dropped already")
	assert.Len(t, c, 2)
}

// A run compares the status that it made with the one that it read: they must not share memory.
func TestChangingAStatusLeavesItsCopiesAsTheyWere(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	before := Status{}
	before.Conditions.Set(Condition{Type: ConditionReady}, now)
	before.Conditions.Set(Condition{Type: ConditionHealthy}, now)
	before.AddEvent(now, "First", "")
	after := before
	after.Conditions.Set(Condition{Type: ConditionReady, Status: true}, now)
	after.Conditions.Set(Condition{Type: ConditionAccepted}, now)
	after.Conditions.Drop(ConditionHealthy)
	after.AddEvent(now, "Second", "")
	ready, _ := before.Conditions.Get(ConditionReady)
	assert.False(t, ready.Status)
	assert.Equal(t, []ConditionType{ConditionReady, ConditionHealthy}, []ConditionType{before.Conditions[0].Type, before.Conditions[1].Type})
	assert.Len(t, before.Conditions, 2)
	assert.Len(t, before.Events, 1)

	before.Conditions = append(make(Conditions, 0, 8), before.Conditions...)
	before.Events = append(make([]Event, 0, 8), before.Events...)
	one, two := before, before
	one.Conditions.Set(Condition{Type: ConditionProvisioned}, now)
	one.AddEvent(now, "One", "")
	two.Conditions.Set(Condition{Type: ConditionExitAddressShared}, now)
	two.AddEvent(now, "Two", "")
	assert.Equal(t, ConditionProvisioned, one.Conditions[2].Type, "two copies do not grow into each other")
	assert.Equal(t, "One", one.Events[1].Reason, "two copies do not grow into each other")
}

func TestACloneSharesNothing(t *testing.T) {
	t.Parallel()
	full := func() Status {
		return Status{
			Accepted: &Accepted{Mode: Managed}, Instance: &Instance{Name: "a"}, Next: &Instance{Name: "b"}, Endpoint: &StatusEndpoint{Host: "h"},
			Drain: &Drain{Reason: "r"}, Retry: &Retry{Attempts: 1}, Events: []Event{{Reason: "e"}}, Conditions: Conditions{{Type: ConditionReady}},
		}
	}
	original := full()
	c := original.Clone()
	assert.Equal(t, original, c)
	c.Accepted.Mode, c.Instance.Name, c.Next.Name, c.Endpoint.Host, c.Drain.Reason, c.Retry.Attempts = External, "x", "x", "x", "x", 9
	c.Events[0].Reason, c.Conditions[0].Type = "x", "x"
	assert.Equal(t, full(), original)
	assert.Equal(t, Status{}, Status{}.Clone())
}

func TestTheLastTenEventsAreKept(t *testing.T) {
	t.Parallel()
	var s Status
	for i := range 25 {
		s.AddEvent(time.Unix(int64(i), 1999), fmt.Sprint("Reason", i), "message")
	}
	assert.Len(t, s.Events, MaxEvents)
	assert.Equal(t, "Reason15", s.Events[0].Reason)
	assert.Equal(t, Event{Time: time.Unix(24, 1000).UTC(), Reason: "Reason24", Message: "message"}, s.Events[9], "newest last")
}
