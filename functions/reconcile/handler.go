package reconcile

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/reconcile"
)

// scheduleHeader is the time that the scheduler meant to call at. It is the same in every delivery of
// one tick, so that a tick which comes twice is probed for once.
const scheduleHeader = "X-CloudScheduler-ScheduleTime"

// maxScheduleAge is how far the scheduled time may be from ours. Probes are counted by growing ticks:
// one from long ago would count for nothing, one from the future would spoil those after it.
const maxScheduleAge = 50 * time.Second

// handler runs once per POST. It answers 200 with the summary, also when somebody else is at it; 500
// when the lock, the documents or a provider's instances could not be read.
type handler struct {
	run func(context.Context, time.Time) (reconcile.Summary, error)
	log *slog.Logger
	now func() time.Time
}

// answer is a summary, and why the run failed if it did.
type answer struct {
	reconcile.Summary
	Error string `json:"error,omitempty"`
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		app.WriteError(w, http.StatusMethodNotAllowed, "INVALID_ARGUMENT", "METHOD_NOT_ALLOWED", "the scheduler posts here")
		return
	}
	// A scheduler that hangs up early is no reason to leave things half done: the run has its own limit.
	s, err := h.run(context.WithoutCancel(r.Context()), h.tick(r))
	h.record(r.Context(), s, err)
	a, status := answer{Summary: s}, http.StatusOK
	if err != nil {
		a.Error, status = err.Error(), http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

// tick is the time that this run's probes are counted by.
func (h *handler) tick(r *http.Request) time.Time {
	now := h.now()
	t, err := time.Parse(time.RFC3339, r.Header.Get(scheduleHeader))
	if err != nil || now.Sub(t).Abs() > maxScheduleAge {
		return now
	}
	return t
}

// record writes the one line that a run has in the log.
func (h *handler) record(ctx context.Context, s reconcile.Summary, err error) {
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.Any("summary", s)}
	switch {
	case err != nil:
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", err.Error()))
	case len(s.Errors) > 0 || s.PublishError != "" || s.OrphansFrozen || len(s.MeltDown) > 0 || len(s.Incomplete) > 0:
		level = slog.LevelWarn
	}
	h.log.LogAttrs(ctx, level, "run", attrs...)
}
