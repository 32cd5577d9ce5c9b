package health

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	client "cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/health/pubsub"
)

const maxAttempts = 5 // the fewest that Pub/Sub allows

// TestPoisonIsHarmlessAndWhatCannotBeRecordedIsDeadLettered runs the real Pub/Sub emulator, pushing
// into the real function, with the subscription that is deployed.
func TestPoisonIsHarmlessAndWhatCannotBeRecordedIsDeadLettered(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	proxy := serveTCP(t, connectProxy)
	for i := range 25 {
		p.add(fmt.Sprintf("proxy-%d", i), proxy)
	}
	healthyTargets := p.targets
	p.add("unrecordable", proxy)
	p.publishCatalog()

	var mu sync.Mutex
	deliveries := map[string]int{} // of each answer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		p.app.Wrap(p.handler).ServeHTTP(rec, r)
		mu.Lock()
		deliveries[http.StatusText(rec.Code)]++
		mu.Unlock()
		w.WriteHeader(rec.Code)
	}))
	t.Cleanup(server.Close)
	project, dead := subscribe(t, server.URL)
	publisher, err := pubsub.Open(t.Context(), project, "probes")
	require.NoError(t, err)
	t.Cleanup(func() { _ = publisher.Close() })

	tick := time.Now()
	fanout := health.NewFanout(publisher)
	waits := []error{
		publisher.Publish(t.Context(), []byte("poison"))(t.Context()),
		fanout.Start(t.Context(), tick, []health.Target{{Name: "unrecordable"}})(t.Context()),
		fanout.Start(t.Context(), tick, healthyTargets)(t.Context()),
		fanout.Start(t.Context(), tick, healthyTargets)(t.Context()),                   // a duplicate of everything
		fanout.Start(t.Context(), tick.Add(-time.Minute), healthyTargets)(t.Context()), // and something late
	}
	for _, err := range waits {
		require.NoError(t, err)
	}

	assert.Eventually(t, func() bool { n, _ := p.healthy(); return n == 25 }, 30*time.Second, 20*time.Millisecond, "the others flow")
	letter := dead(t)
	m, err := health.DecodeMessage(letter, time.Now())
	require.NoError(t, err)
	assert.Equal(t, "unrecordable", m.Proxies[0].Name)
	assert.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return deliveries["No Content"] >= 10
	}, 30*time.Second, 20*time.Millisecond, "three chunks, thrice, and the poison")
	mu.Lock()
	defer mu.Unlock()
	assert.GreaterOrEqual(t, deliveries["Service Unavailable"], maxAttempts)
	documents, entries := p.healthy()
	assert.Equal(t, 25, documents)
	assert.Equal(t, 25, entries)
	for _, d := range healthyTargets {
		doc, err := p.store.GetProxy(t.Context(), d.Name)
		require.NoError(t, err)
		assert.EqualValues(t, 1, doc.Status.Health.ConsecutiveSuccesses)
	}
	families, err := p.app.Registry.Gather()
	require.NoError(t, err)
	var undecodable float64
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if f.GetName() == "proxyfleet_probe_messages_total" && strings.Contains(metric.String(), "undecodable") {
				undecodable = metric.GetCounter().GetValue()
			}
		}
	}
	assert.EqualValues(t, 1, undecodable, "poison is delivered once")
}

// subscribe makes what deploy makes, in a project of this test's own: topic, push subscription and
// dead-letter topic. dead waits for a dead letter.
func subscribe(t *testing.T, endpoint string) (project string, dead func(*testing.T) []byte) {
	t.Helper()
	if os.Getenv("PUBSUB_EMULATOR_HOST") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PUBSUB_EMULATOR_HOST must name a running emulator")
		}
		t.Skip("skipped: PUBSUB_EMULATOR_HOST names no emulator")
	}
	project = fmt.Sprintf("test-%d", rand.Int64())
	c, err := client.NewClient(t.Context(), project)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	topic := func(id string) string { return "projects/" + project + "/topics/" + id }
	subscription := func(id string) string { return "projects/" + project + "/subscriptions/" + id }
	for _, id := range []string{"probes", "probes-dead"} {
		_, err := c.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic(id)})
		require.NoError(t, err)
	}
	for _, s := range []*pubsubpb.Subscription{
		{Name: subscription("dead-keep"), Topic: topic("probes-dead")},
		{
			Name: subscription("push"), Topic: topic("probes"), AckDeadlineSeconds: 120,
			PushConfig:       &pubsubpb.PushConfig{PushEndpoint: endpoint},
			RetryPolicy:      &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(time.Second / 10), MaximumBackoff: durationpb.New(time.Second)},
			DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topic("probes-dead"), MaxDeliveryAttempts: maxAttempts},
		},
	} {
		_, err := c.SubscriptionAdminClient.CreateSubscription(t.Context(), s)
		require.NoError(t, err)
	}
	t.Cleanup(func() { // stops the pushing before the server goes
		_ = c.SubscriptionAdminClient.DeleteSubscription(context.WithoutCancel(t.Context()), &pubsubpb.DeleteSubscriptionRequest{Subscription: subscription("push")})
	})
	return project, func(t *testing.T) []byte {
		t.Helper()
		deadline := time.Now().Add(60 * time.Second)
		for time.Now().Before(deadline) {
			got, err := c.SubscriptionAdminClient.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: subscription("dead-keep"), MaxMessages: 1})
			if err == nil && len(got.GetReceivedMessages()) > 0 {
				return got.GetReceivedMessages()[0].GetMessage().GetData()
			}
		}
		t.Fatal("nothing was dead-lettered")
		return nil
	}
}
