package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served runs Until around handler and returns its address, what ends it, and its result.
func served(t *testing.T, handler http.HandlerFunc, grace, last time.Duration) (url string, end context.CancelFunc, result chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	result = make(chan error, 1)
	go func() { result <- Until(ctx, l, handler, grace, last) }()
	return "http://" + l.Addr().String(), end, result
}

type answer struct {
	body string
	err  error
}

func get(url string) chan answer {
	out := make(chan answer, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get(url) //nolint:noctx // ends with the server
		if err != nil {
			out <- answer{err: err}
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		out <- answer{string(body), err}
	}()
	return out
}

func TestRequestsUnderWayAreFinished(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	url, end, result := served(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, "finished")
	}, time.Minute, time.Minute)
	got := get(url)
	<-arrived
	end()
	require.Eventually(t, func() bool { // no new ones meanwhile
		conn, err := net.Dial("tcp", url[len("http://"):])
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 10*time.Second, 5*time.Millisecond)
	close(release)
	assert.Equal(t, answer{body: "finished"}, <-got)
	require.NoError(t, <-result)
}

func TestLongRequestsAreToldToEnd(t *testing.T) {
	arrived := make(chan struct{})
	url, end, result := served(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		_, _ = io.WriteString(w, "ended early, in order")
	}, time.Millisecond, time.Minute)
	got := get(url)
	<-arrived
	end()
	assert.Equal(t, answer{body: "ended early, in order"}, <-got)
	require.NoError(t, <-result)
}

func TestWhatDoesNotEndIsDropped(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	url, end, result := served(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}, time.Millisecond, 20*time.Millisecond)
	got := get(url)
	<-arrived
	end()
	require.ErrorContains(t, <-result, "requests were still under way")
	require.Error(t, (<-got).err)
	close(release)
}

func TestAListenerThatBreaksIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorContains(t, Until(t.Context(), l, http.NotFoundHandler(), 0, 0), "serve:")
}
