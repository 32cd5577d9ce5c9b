package main

import (
	"context"
	"fmt"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// probeTopic is the topic that probes are fanned out over.
const probeTopic = "proxyfleet-probes"

// createSubscriptions makes what deploy makes in the cloud: the topic, a push subscription to the
// health function, and a dead-letter topic with a subscription that keeps what is dead.
func (p *plane) createSubscriptions(ctx context.Context) error {
	conn, err := grpc.NewClient(p.state.PubSubHost, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the Pub/Sub emulator: %w", err)
	}
	client, err := pubsub.NewClient(ctx, p.state.ProjectID, option.WithGRPCConn(conn))
	if err != nil {
		return fmt.Errorf("connect to the Pub/Sub emulator: %w", err)
	}
	defer client.Close()
	topic := func(id string) string { return fmt.Sprintf("projects/%s/topics/%s", p.state.ProjectID, id) }
	subscription := func(id string) string {
		return fmt.Sprintf("projects/%s/subscriptions/%s", p.state.ProjectID, id)
	}
	dead := probeTopic + "-dead"
	for _, id := range []string{probeTopic, dead} {
		_, err := client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic(id)})
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return fmt.Errorf("create topic %s: %w", id, err)
		}
	}
	push := subscription(probeTopic + "-push")
	// An emulator that was here before us may hold one that pushes to a port of the past.
	_ = client.SubscriptionAdminClient.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: push})
	for _, s := range []*pubsubpb.Subscription{
		{Name: subscription(dead + "-keep"), Topic: topic(dead)},
		{
			Name: push, Topic: topic(probeTopic), AckDeadlineSeconds: 120,
			PushConfig:       &pubsubpb.PushConfig{PushEndpoint: p.state.HealthURL + "/projects/" + p.state.ProjectID + "/topics/" + probeTopic},
			RetryPolicy:      &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(1e9), MaximumBackoff: durationpb.New(10e9)},
			DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topic(dead), MaxDeliveryAttempts: 5},
		},
	} {
		_, err := client.SubscriptionAdminClient.CreateSubscription(ctx, s)
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return fmt.Errorf("create subscription %s: %w", s.GetName(), err)
		}
	}
	return nil
}
