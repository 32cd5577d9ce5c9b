package health

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/health"
)

var tick = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

const probeMessage = `{"tick":"2026-12-01T10:00:00Z","proxies":[{"name":"a","incarnation":3,"shard":2,"next":true}]}`

// envelope is what a push subscription posts, as it looks in the wild.
func envelope(data string) string {
	return fmt.Sprintf(`{"message":{"attributes":{"k":"v"},"data":%q,"messageId":"2070443601311540","message_id":"2070443601311540",`+
		`"publishTime":"2026-12-01T10:00:00.19Z","orderingKey":""},"subscription":"projects/p/subscriptions/s","deliveryAttempt":2}`,
		base64.StdEncoding.EncodeToString([]byte(data)))
}

func TestEveryShapeThatPubSubArrivesInIsUnderstood(t *testing.T) {
	t.Parallel()
	structured := http.Header{"Content-Type": {"application/cloudevents+json; charset=utf-8"}}
	for name, row := range map[string]struct {
		header http.Header
		body   string
	}{
		"a push subscription's envelope": {http.Header{"Content-Type": {"application/json"}}, envelope(probeMessage)},
		"an envelope of no content type": {http.Header{}, envelope(probeMessage)},
		"Eventarc, CloudEvent in binary mode": {http.Header{
			"Content-Type": {"application/json"}, "Ce-Id": {"1"}, "Ce-Specversion": {"1.0"},
			"Ce-Type": {"google.cloud.pubsub.topic.v1.messagePublished"}, "Ce-Source": {"//pubsub.googleapis.com/projects/p/topics/t"},
		}, envelope(probeMessage)},
		"a CloudEvent in structured mode": {structured, `{"specversion":"1.0","id":"1","source":"s",` +
			`"type":"google.cloud.pubsub.topic.v1.messagePublished","datacontenttype":"application/json","data":` + envelope(probeMessage) + `}`},
		"a CloudEvent in structured mode with encoded data": {structured, `{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"` +
			base64.StdEncoding.EncodeToString([]byte(envelope(probeMessage))) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := decode(row.header, []byte(row.body), tick)
			require.NoError(t, err)
			assert.Equal(t, health.Message{Tick: tick, Proxies: []health.Target{{Name: "a", Incarnation: 3, Shard: 2, Next: true}}}, m)
		})
	}
}

// poison is what can never be decoded, with a word in it that must not be repeated.
func poison() map[string]string {
	return map[string]string{
		"nothing":                   "",
		"no JSON":                   "planted",
		"no UTF-8":                  "\xff\xfeplanted",
		"no message":                `{"subscription":"planted"}`,
		"a message of null":         `{"message":null}`,
		"a message of a wrong type": `{"message":"planted"}`,
		"data that is not base64":   `{"message":{"data":"planted!"}}`,
		"data of a wrong type":      `{"message":{"data":{"planted":1}}}`,
		"no data":                   `{"message":{}}`,
		"data that is no message":   envelope("planted"),
		"a message about nothing":   envelope(`{"tick":"2026-12-01T10:00:00Z"}`),
		"a future tick":             envelope(`{"tick":"2027-12-01T10:00:00Z","proxies":[{"name":"planted"}]}`),
		"a name that is a path":     envelope(`{"tick":"2026-12-01T10:00:00Z","proxies":[{"name":"../planted"}]}`),
		"more than fits":            envelope(strings.Repeat("planted", maxRequest/7)),
	}
}

func TestWhatCannotBeDecodedIsNotRepeatedInTheError(t *testing.T) {
	t.Parallel()
	for name, body := range poison() {
		for _, media := range []string{"application/json", "application/cloudevents+json", "a/b/c"} {
			t.Run(name+" as "+media, func(t *testing.T) {
				t.Parallel()
				_, err := decode(http.Header{"Content-Type": {media}}, []byte(body), tick)
				require.Error(t, err)
				assert.NotContains(t, err.Error(), "planted")
			})
		}
	}
}
