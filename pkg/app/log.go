package app

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// NewLogger writes JSON lines with the field names of Cloud Logging
// (cloud.google.com/logging/docs/structured-logging) to w. level is debug, info, warn or error;
// anything else means info.
func NewLogger(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	if l.UnmarshalText([]byte(level)) != nil {
		l = slog.LevelInfo
	}
	return slog.New(traceHandler{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l, ReplaceAttr: cloudNames})})
}

func cloudNames(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "message"
	case slog.LevelKey:
		a.Key = "severity"
		if a.Value.Any() == slog.LevelWarn {
			a.Value = slog.StringValue("WARNING")
		}
	}
	return a
}

// traceHandler adds the trace of the request that a record was logged under.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if trace, ok := ctx.Value(traceKey{}).(string); ok {
		r.AddAttrs(slog.String("logging.googleapis.com/trace", trace))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}

type traceKey struct{}

// withTrace reads the header "TRACE_ID/SPAN_ID;o=OPTIONS" that Cloud Run sends.
func withTrace(ctx context.Context, project, header string) context.Context {
	id, _, _ := strings.Cut(header, "/")
	if project == "" || len(id) != 32 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, "projects/"+project+"/traces/"+id)
}
