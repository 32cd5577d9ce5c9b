package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// TargetsPerMessage is how many targets share a message: few enough that one silent proxy holds up
// few others, many enough that a thousand proxies are a hundred requests.
const TargetsPerMessage = 10

// Publisher sends one message and returns at once. wait blocks until the message is accepted or
// refused, or its context ends; it may be called once.
type Publisher interface {
	Publish(ctx context.Context, data []byte) (wait func(context.Context) error)
}

// Fanout hands targets to the health function.
type Fanout struct {
	publisher Publisher
}

// NewFanout publishes through p.
func NewFanout(p Publisher) *Fanout { return &Fanout{publisher: p} }

// Start publishes targets in messages of TargetsPerMessage and returns at once. wait collects all
// results until its context ends; its error says how many messages were not accepted, and why.
func (f *Fanout) Start(ctx context.Context, tick time.Time, targets []Target) (wait func(context.Context) error) {
	var waits []func(context.Context) error
	for chunk := range slices.Chunk(targets, TargetsPerMessage) {
		data, err := json.Marshal(Message{Tick: canonical(tick), Proxies: chunk})
		if err != nil {
			waits = append(waits, func(context.Context) error { return err })
			continue
		}
		waits = append(waits, f.publisher.Publish(ctx, data))
	}
	return func(ctx context.Context) error { return collect(ctx, waits) }
}

func collect(ctx context.Context, waits []func(context.Context) error) error {
	var errs []error
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("publish probes: %d of %d messages: %w", len(errs), len(waits), errors.Join(distinct(errs)...))
}

// distinct keeps the first of errors that read the same: an outage fails every message alike.
func distinct(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(err error) bool {
		again := seen[err.Error()]
		seen[err.Error()] = true
		return again
	})
}
