package pubsub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"crawl.example.com/proxyfleet/pkg/health"
)

// emulator makes a topic "probes" in a project of this test's own, and a subscription that keeps what
// is published.
func emulator(t *testing.T) (project string, pull func(n int) [][]byte) {
	t.Helper()
	if os.Getenv("PUBSUB_EMULATOR_HOST") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PUBSUB_EMULATOR_HOST must name a running emulator")
		}
		t.Skip("skipped: PUBSUB_EMULATOR_HOST names no emulator")
	}
	project = fmt.Sprintf("test-%d", rand.Int64())
	c, err := pubsub.NewClient(t.Context(), project)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	topic := "projects/" + project + "/topics/probes"
	_, err = c.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic})
	require.NoError(t, err)
	sub := "projects/" + project + "/subscriptions/keep"
	_, err = c.SubscriptionAdminClient.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: sub, Topic: topic})
	require.NoError(t, err)
	return project, func(n int) [][]byte {
		var out [][]byte
		for len(out) < n {
			got, err := c.SubscriptionAdminClient.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: sub, MaxMessages: int32(n - len(out))})
			require.NoError(t, err)
			for _, m := range got.GetReceivedMessages() {
				out = append(out, m.GetMessage().GetData())
			}
		}
		return out
	}
}

func publisher(t *testing.T, project, topic string, timeout time.Duration) *Publisher {
	t.Helper()
	p, err := Open(t.Context(), project, topic)
	require.NoError(t, err)
	p.topic.PublishSettings.Timeout = timeout
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestWhatIsPublishedIsStoredWhenWaitReturns(t *testing.T) {
	project, pull := emulator(t)
	p := publisher(t, project, "probes", Timeout)
	var targets []health.Target
	for i := range 250 {
		targets = append(targets, health.Target{Name: fmt.Sprintf("p%d", i)})
	}
	require.NoError(t, health.NewFanout(p).Start(t.Context(), time.Now(), targets)(t.Context()))
	seen := map[string]bool{}
	for _, data := range pull(25) {
		m, err := health.DecodeMessage(data, time.Now())
		require.NoError(t, err)
		for _, target := range m.Proxies {
			seen[target.Name] = true
		}
	}
	assert.Len(t, seen, 250)

	byName := publisher(t, project, "projects/"+project+"/topics/probes", Timeout)
	require.NoError(t, byName.Publish(t.Context(), []byte("x"))(t.Context()), "a topic's full name does, too")
}

func TestAMissingTopicIsReported(t *testing.T) {
	project, _ := emulator(t)
	err := publisher(t, project, "absent", Timeout).Publish(t.Context(), []byte("x"))(t.Context())
	require.Error(t, err)
	assert.Equal(t, codes.NotFound, status.Code(err))
	assert.Contains(t, err.Error(), "publish to absent")
}

func TestPublishingEndsWithItsTimeoutAndItsCallersPatience(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog and says nothing
	require.NoError(t, err)
	defer l.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", l.Addr().String())
	p := publisher(t, "project", "probes", 300*time.Millisecond)
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Publish(t.Context(), []byte("x"))(impatient), context.DeadlineExceeded)
	require.Error(t, p.Publish(t.Context(), []byte("x"))(t.Context()))
}

func TestAClosedPublisherRefuses(t *testing.T) {
	project, _ := emulator(t)
	p := publisher(t, project, "probes", Timeout)
	require.NoError(t, p.Publish(t.Context(), []byte("x"))(t.Context()))
	require.NoError(t, p.Close())
	require.Error(t, p.Publish(t.Context(), []byte("x"))(t.Context()))
}
