package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// Opener builds a function's handler from the shared parts; see functions/*.
type Opener func(ctx context.Context, a *App) (http.Handler, error)

// Times of opening: long enough for a cold client, and no hammering while it fails.
const (
	openTimeout = 20 * time.Second
	openRetry   = 2 * time.Second
)

// Handler returns the function that the framework serves. The first request opens the App from the
// environment and, through open, the handler; a failure answers every request with the reason, in
// the log in full and to callers in short, and is tried again after two seconds.
func Handler(open Opener) func(http.ResponseWriter, *http.Request) {
	l := &lazy{open: func(ctx context.Context) (http.Handler, error) {
		a, err := Open(ctx, os.Getenv)
		if err != nil {
			return nil, err
		}
		if err := a.ServeMetrics(); err != nil {
			return nil, err
		}
		h, err := open(ctx, a)
		if err != nil {
			return nil, err
		}
		return a.Wrap(h), nil
	}}
	return l.ServeHTTP
}

// lazy opens a handler once, when it is first needed.
type lazy struct {
	open func(context.Context) (http.Handler, error)

	mu      sync.Mutex
	handler http.Handler
	err     error
	tried   time.Time
}

// ServeHTTP serves with the opened handler, or says why there is none.
func (l *lazy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := l.get(r.Context())
	if err != nil {
		w.Header().Set("Retry-After", "5")
		WriteError(w, http.StatusServiceUnavailable, "UNAVAILABLE", "NOT_CONFIGURED", "the function could not start: "+err.Error())
		return
	}
	h.ServeHTTP(w, r)
}

func (l *lazy) get(ctx context.Context) (http.Handler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handler != nil {
		return l.handler, nil
	}
	if l.err != nil && time.Since(l.tried) < openRetry {
		return nil, l.err
	}
	// The clients that are opened here outlive the request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	l.handler, l.err = l.open(ctx)
	l.tried = time.Now()
	if l.err != nil {
		NewLogger(os.Stdout, "error").Error("function could not start", "error", l.err.Error())
	}
	return l.handler, l.err
}

// Wrap adds to h what all functions need: the trace of the request in its logs, and an answer in our
// own shape when h panics.
func (a *App) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(withTrace(r.Context(), a.Config.ProjectID, r.Header.Get("X-Cloud-Trace-Context")))
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			a.Log.ErrorContext(r.Context(), "panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			WriteError(w, http.StatusInternalServerError, "INTERNAL", "INTERNAL", "internal error; the log has the details")
		}()
		h.ServeHTTP(w, r)
	})
}

// WriteError answers in the shape of AIP-193 (google.aip.dev/193).
func WriteError(w http.ResponseWriter, code int, status, reason, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": code, "status": status, "message": message,
		"details": []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "proxyfleet",
		}},
	}})
}
