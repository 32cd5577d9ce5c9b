package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/app"
	"crawl.example.com/proxyfleet/pkg/health"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

// under makes a handler over the given sweep, and returns its log and metrics.
func under(sweep func(context.Context, health.Message) error) (*handler, *bytes.Buffer, *prometheus.Registry) {
	log, reg := &bytes.Buffer{}, prometheus.NewRegistry()
	return &handler{
		sweep: sweep, metrics: health.NewMetrics(reg), log: slog.New(slog.NewJSONHandler(log, nil)),
		now: func() time.Time { return tick },
	}, log, reg
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w
}

func TestAMessageThatIsDoneWithIsAcknowledged(t *testing.T) {
	t.Parallel()
	var got health.Message
	h, log, _ := under(func(ctx context.Context, m health.Message) error {
		got = m
		deadline, ok := ctx.Deadline()
		assert.True(t, ok)
		assert.Less(t, time.Until(deadline), 120*time.Second, "Pub/Sub must not deliver again what is still being worked on")
		return nil
	})
	w := post(h, envelope(probeMessage))
	assert.Equal(t, http.StatusNoContent, w.Code)
	assert.Equal(t, "a", got.Proxies[0].Name)
	assert.Empty(t, log.String(), "a message like all others is not worth a line")
}

func TestWhatCannotBeRecordedIsToBeDeliveredAgain(t *testing.T) {
	t.Parallel()
	h, log, _ := under(func(context.Context, health.Message) error { return errors.New("record health of a: outage") })
	w := post(h, envelope(probeMessage))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "NOT_RECORDED")
	assert.Contains(t, log.String(), "outage")
}

func TestAPoisonMessageIsAcknowledgedCountedAndNeverEchoed(t *testing.T) {
	t.Parallel()
	for name, body := range poison() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, log, reg := under(func(context.Context, health.Message) error { t.Error("must not be swept"); return nil })
			w := post(h, body)
			assert.Equal(t, http.StatusNoContent, w.Code)
			assert.Empty(t, w.Body.String())
			assert.Equal(t, 1, strings.Count(log.String(), "\n"))
			assert.Contains(t, log.String(), `"bytes":`)
			assert.NotContains(t, log.String(), "planted")
			require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP proxyfleet_probe_messages_total Probe messages received, by what became of them.
# TYPE proxyfleet_probe_messages_total counter
proxyfleet_probe_messages_total{result="done"} 0
proxyfleet_probe_messages_total{result="failed"} 0
proxyfleet_probe_messages_total{result="undecodable"} 1
`), "proxyfleet_probe_messages_total"))
		})
	}
}

func TestOnlyPostsAreMessages(t *testing.T) {
	t.Parallel()
	h, _, _ := under(func(context.Context, health.Message) error { t.Error("must not be swept"); return nil })
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/healthz", nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
		assert.Equal(t, http.MethodPost, w.Header().Get("Allow"))
	}
}

func TestARequestThatBreaksOffIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	h, _, _ := under(func(context.Context, health.Message) error { t.Error("must not be swept"); return nil })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", &halfABody{}))
	assert.Equal(t, http.StatusBadRequest, w.Code)
}

type halfABody struct{ sent bool }

func (b *halfABody) Read(p []byte) (int, error) {
	if b.sent {
		return 0, errors.New("connection reset")
	}
	b.sent = true
	return copy(p, `{"message":`), nil
}

func TestResultsAreRecordedThoughThePusherHangsUp(t *testing.T) {
	t.Parallel()
	ctx, hangUp := context.WithCancel(t.Context())
	h, _, _ := under(func(ctx context.Context, _ health.Message) error {
		hangUp()
		return ctx.Err()
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(envelope(probeMessage))))
	assert.Equal(t, http.StatusNoContent, w.Code)
}

func TestOpenNamesWhatIsWrongWithTheAuthorities(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, []byte("no certificate"), 0o600))
	for file, want := range map[string]string{empty: "holds no certificate", filepath.Join(t.TempDir(), "absent.pem"): "no such file"} {
		_, err := Open(t.Context(), app.New(app.Config{ExtraCAFile: file}, memory.New(time.Now), nil, nil))
		require.ErrorContains(t, err, "EXTRA_CA_FILE")
		assert.ErrorContains(t, err, want)
	}
}
