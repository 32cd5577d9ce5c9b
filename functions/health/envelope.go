package health

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"time"

	"crawl.example.com/proxyfleet/pkg/health"
)

// pushed is what a push subscription posts, and the data of the CloudEvent that Eventarc makes of it:
// https://cloud.google.com/pubsub/docs/push#receive_push, google.events.cloud.pubsub.v1.MessagePublishedData.
type pushed struct {
	Message *struct {
		Data string `json:"data"` // base64
	} `json:"message"`
}

// event is a CloudEvent in structured mode, as far as it matters here.
type event struct {
	Data       json.RawMessage `json:"data"`
	DataBase64 []byte          `json:"data_base64"`
}

// decode finds the probe message in a request: a push subscription's envelope, posted as it is or by
// Eventarc (a CloudEvent in binary mode, whose body is the same), or a CloudEvent in structured mode.
// Its errors never quote what was sent.
func decode(header http.Header, body []byte, now time.Time) (health.Message, error) {
	if media, _, _ := mime.ParseMediaType(header.Get("Content-Type")); media == "application/cloudevents+json" {
		var e event
		if err := json.Unmarshal(body, &e); err != nil {
			return health.Message{}, errors.New("not a CloudEvent")
		}
		body = e.Data
		if len(e.DataBase64) > 0 {
			body = e.DataBase64
		}
	}
	var p pushed
	if err := json.Unmarshal(body, &p); err != nil || p.Message == nil {
		return health.Message{}, errors.New("not a Pub/Sub envelope")
	}
	data, err := base64.StdEncoding.DecodeString(p.Message.Data)
	if err != nil {
		return health.Message{}, errors.New("message.data is not base64")
	}
	return health.DecodeMessage(data, now)
}
