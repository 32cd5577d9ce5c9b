// Package pubsub publishes probe messages to Pub/Sub.
package pubsub

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"crawl.example.com/proxyfleet/pkg/health"
)

// Timeout is how long one message may take to be accepted, with all retries of the client. It is
// below the shortest budget of a run that is any use; the client's own default is a minute.
const Timeout = 8 * time.Second

// Publisher publishes to one topic. It is safe for concurrent use.
type Publisher struct {
	client *pubsub.Client
	topic  *pubsub.Publisher
}

var _ health.Publisher = (*Publisher)(nil)

// Open connects to topic, an id or a full name, in project; with PUBSUB_EMULATOR_HOST set, to the
// emulator. A topic that does not exist shows when something is published. Open once per process
// and Close at its end only: a closed Publisher refuses everything.
func Open(ctx context.Context, project, topic string) (*Publisher, error) {
	client, err := pubsub.NewClient(ctx, project)
	if err != nil {
		return nil, fmt.Errorf("open Pub/Sub: %w", err)
	}
	t := client.Publisher(topic)
	t.PublishSettings.Timeout = Timeout
	return &Publisher{client: client, topic: t}, nil
}

// Publish implements health.Publisher: wait returns when Pub/Sub has stored the message, has refused
// it, Timeout has passed or its context has ended.
func (p *Publisher) Publish(ctx context.Context, data []byte) func(context.Context) error {
	result := p.topic.Publish(ctx, &pubsub.Message{Data: data})
	return func(ctx context.Context) error {
		if _, err := result.Get(ctx); err != nil {
			return fmt.Errorf("publish to %s: %w", p.topic.ID(), err)
		}
		return nil
	}
}

// Close sends what is still waiting and disconnects.
func (p *Publisher) Close() error {
	p.topic.Stop()
	return p.client.Close()
}
