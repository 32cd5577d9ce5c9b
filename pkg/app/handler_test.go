package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func serve(h http.Handler, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOpeningIsTriedAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	opened := 0
	l := &lazy{open: func(context.Context) (http.Handler, error) {
		opened++
		if opened == 1 {
			return nil, errors.New("no store today")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), nil
	}}
	w := serve(l)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "no store today")
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	serve(l)
	require.Equal(t, 1, opened, "a failed opening is not hammered")
	l.tried = time.Now().Add(-openRetry)
	require.Equal(t, http.StatusTeapot, serve(l).Code)
	serve(l)
	require.Equal(t, 2, opened, "an opened handler stays")
}

func TestOpeningOutlivesTheRequestThatCausedIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := &lazy{open: func(ctx context.Context) (http.Handler, error) { return http.NotFoundHandler(), ctx.Err() }}
	_, err := l.get(ctx)
	require.NoError(t, err)
}

func TestPanicIsAnsweredInOurShapeAndLoggedWithItsTrace(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := New(Config{ProjectID: "my-project"}, nil, nil, NewLogger(&log, "info"))
	w := serve(a.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("100% broken") })),
		"X-Cloud-Trace-Context", "105445aa7843bc8bf206b12000100000/1;o=1")
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.NotContains(t, w.Body.String(), "broken")
	var line map[string]any
	require.NoError(t, json.Unmarshal(log.Bytes(), &line))
	assert.Equal(t, "ERROR", line["severity"])
	assert.Equal(t, "panic", line["message"])
	assert.Equal(t, "100% broken", line["panic"])
	assert.Equal(t, "projects/my-project/traces/105445aa7843bc8bf206b12000100000", line["logging.googleapis.com/trace"])
}

func TestAbortedAnswersStayAborted(t *testing.T) {
	t.Parallel()
	a := New(Config{}, nil, nil, NewLogger(&bytes.Buffer{}, "info"))
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		serve(a.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })))
	})
}

func TestLogsHaveTheNamesOfCloudLogging(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l := NewLogger(&log, "warn").With("function", "lease").WithGroup("g")
	l.Info("not this")
	l.Warn("low on proxies", "message", "kept inside its group")
	require.JSONEq(t, `{"severity":"WARNING","message":"low on proxies","function":"lease","g":{"message":"kept inside its group"}}`,
		withoutTime(t, log.Bytes()))
}

func withoutTime(t *testing.T, line []byte) string {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(line, &m))
	require.NotEmpty(t, m["time"])
	delete(m, "time")
	out, err := json.Marshal(m)
	require.NoError(t, err)
	return string(out)
}

func TestForgedTraceHeadersAreIgnored(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", "/", "x/1", "105445aa7843bc8bf206b1200010000z/1", "105445aa7843bc8bf206b1200010000/1"} {
		require.Nil(t, withTrace(t.Context(), "my-project", header).Value(traceKey{}), header)
	}
}

func TestMetricsAreServedBesideTheFunction(t *testing.T) {
	t.Parallel()
	a := New(Config{MetricsPort: -1}, nil, nil, NewLogger(&bytes.Buffer{}, "info"))
	require.NoError(t, a.ServeMetrics(), "off is no failure")
	w := serve(a.MetricsHandler())
	require.Contains(t, w.Body.String(), "go_goroutines")
}
