package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMessagesAreReadStrictlyWhereItMatters(t *testing.T) {
	t.Parallel()
	const good = `{"tick":"2026-12-01T10:00:00.123456789Z","proxies":[{"name":"a","incarnation":3,"shard":-1,"next":true}],"added":"later"}`
	m, err := DecodeMessage([]byte(good), start)
	require.NoError(t, err)
	assert.Equal(t, Message{Tick: start.Add(123456 * time.Microsecond), Proxies: []Target{{Name: "a", Incarnation: 3, Shard: -1, Next: true}}}, m,
		"ticks are as exact as the store's times; unknown fields are for later versions")
	for name, data := range map[string]string{
		"empty":             ``,
		"not JSON":          `secret-planted`,
		"not UTF-8":         "\xff\xfe",
		"a list":            `[]`,
		"no tick":           `{"proxies":[{"name":"a"}]}`,
		"no proxies":        `{"tick":"2026-12-01T10:00:00Z","proxies":[]}`,
		"a future tick":     `{"tick":"2999-01-01T00:00:00Z","proxies":[{"name":"a"}]}`,
		"a wrong type":      `{"tick":7,"proxies":"secret-planted"}`,
		"no name":           `{"tick":"2026-12-01T10:00:00Z","proxies":[{"incarnation":1}]}`,
		"a path for a name": `{"tick":"2026-12-01T10:00:00Z","proxies":[{"name":"a/secret-planted"}]}`,
		"too many":          `{"tick":"2026-12-01T10:00:00Z","proxies":[` + strings.Repeat(`{"name":"a"},`, 1000) + `{"name":"a"}]}`,
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			t.Parallel()
			_, err := DecodeMessage([]byte(data), start)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "secret-planted")
		})
	}
}

// topic is a Publisher that keeps what it gets; the i-th message is refused with refuse[i].
type topic struct {
	messages []Message
	refuse   map[int]error
	waited   int
}

func (p *topic) Publish(_ context.Context, data []byte) func(context.Context) error {
	var m Message
	_ = json.Unmarshal(data, &m)
	i := len(p.messages)
	p.messages = append(p.messages, m)
	return func(ctx context.Context) error {
		p.waited++
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return p.refuse[i]
	}
}

func targets(n int) []Target {
	out := make([]Target, n)
	for i := range out {
		out[i] = Target{Name: fmt.Sprintf("p%d", i), Incarnation: int64(i)}
	}
	return out
}

func TestFanoutSendsTenToAMessage(t *testing.T) {
	t.Parallel()
	var p topic
	wait := NewFanout(&p).Start(t.Context(), start, targets(23))
	assert.Zero(t, p.waited, "publishing does not wait")
	require.NoError(t, wait(t.Context()))
	require.Len(t, p.messages, 3)
	assert.Equal(t, []int{10, 10, 3}, []int{len(p.messages[0].Proxies), len(p.messages[1].Proxies), len(p.messages[2].Proxies)})
	var all []Target
	for _, m := range p.messages {
		assert.True(t, m.Tick.Equal(start))
		all = append(all, m.Proxies...)
	}
	assert.Equal(t, targets(23), all)
}

func TestFanoutOfNothingSendsNothing(t *testing.T) {
	t.Parallel()
	var p topic
	require.NoError(t, NewFanout(&p).Start(t.Context(), start, nil)(t.Context()))
	assert.Empty(t, p.messages)
}

func TestFanoutCollectsAllResultsAndSaysHowManyFailed(t *testing.T) {
	t.Parallel()
	outage, missing := errors.New("outage"), errors.New("no such topic")
	p := topic{refuse: map[int]error{0: outage, 1: missing, 3: outage}}
	err := NewFanout(&p).Start(t.Context(), start, targets(50))(t.Context())
	assert.Equal(t, 5, p.waited, "every result is collected")
	require.ErrorIs(t, err, outage)
	require.ErrorIs(t, err, missing)
	assert.Contains(t, err.Error(), "3 of 5 messages")
	assert.Equal(t, 1, strings.Count(err.Error(), "outage"), "each reason once")
}

func TestFanoutEndsWithItsBudget(t *testing.T) {
	t.Parallel()
	var p topic
	ctx, cancel := context.WithCancel(t.Context())
	wait := NewFanout(&p).Start(ctx, start, targets(5))
	cancel()
	require.ErrorIs(t, wait(ctx), context.Canceled)
}
