package health

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/health"
)

const (
	// budget is below the acknowledgement deadline of the deployed push subscription, 120 s, and
	// above the worst message: a probe of 60 s, a look at its target of 30 s, and the writes.
	budget = 110 * time.Second
	// maxRequest is far above what a probe message in any envelope needs. What is longer is cut, which
	// makes it undecodable.
	maxRequest = 1 << 20
)

// handler receives messages. Its answer is all that Pub/Sub learns: 204 means done with, whatever the
// proxies are like; 503 means that something could not be recorded, and has the message delivered
// again and in the end dead-lettered. What cannot be decoded will not get better by being repeated, so
// it is counted and done with.
type handler struct {
	sweep   func(context.Context, health.Message) error
	metrics *health.Metrics
	log     *slog.Logger
	now     func() time.Time
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		app.WriteError(w, http.StatusMethodNotAllowed, "INVALID_ARGUMENT", "METHOD_NOT_ALLOWED", "Pub/Sub posts messages here")
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		app.WriteError(w, http.StatusBadRequest, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "the request broke off")
		return
	}
	m, err := decode(r.Header, body, h.now())
	if err != nil {
		h.metrics.Undecodable()
		// Neither the log nor the answer repeats what somebody sent.
		h.log.WarnContext(r.Context(), "message dropped: not a probe message", "bytes", len(body), "reason", err.Error())
		w.WriteHeader(http.StatusNoContent)
		return
	}
	// A pusher that loses patience closes the connection; what was probed is still worth recording.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), budget)
	defer cancel()
	if err := h.sweep(ctx, m); err != nil {
		h.log.ErrorContext(ctx, "probe results not recorded", "tick", m.Tick, "error", err.Error())
		app.WriteError(w, http.StatusServiceUnavailable, "UNAVAILABLE", "NOT_RECORDED", "not all results could be recorded")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
