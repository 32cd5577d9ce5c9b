package health

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/health"
)

// BenchmarkHealthSweep judges 1,000 real proxies, 200 of which take connections and stay silent for
// the 10 s of their timeout, on one instance of the function: fan-out, push envelopes over HTTP,
// CONNECT, TLS, verdicts. It prints a line for a fresh fleet and one for the same fleet at rest.
// Resident memory is the peak, and includes the proxies and their target, which run beside it.
//
//	go test ./functions/health -run '^$' -bench HealthSweep -benchtime 1x
func BenchmarkHealthSweep(b *testing.B) {
	const proxies, holes = 1000, 200
	p := newPlane(b)
	var good, silent []string
	for range 10 {
		good = append(good, serveTCP(b, connectProxy))
		silent = append(silent, serveTCP(b, blackHole))
	}
	for i := range proxies {
		address := good[i%10]
		if i%(proxies/holes) == 0 {
			address = silent[i%10]
		}
		p.add(fmt.Sprintf("proxy-%d", i), address)
	}
	p.publishCatalog()
	server := httptest.NewServer(p.app.Wrap(p.handler))
	b.Cleanup(server.Close)
	fanout := health.NewFanout(&pusher{url: server.URL})

	sweep := func(tick time.Time) {
		p.store.writes.Store(0)
		began := time.Now()
		require.NoError(b, fanout.Start(b.Context(), tick, p.targets)(b.Context()))
		seconds := time.Since(began).Seconds()
		documents, entries := p.healthy()
		require.Equal(b, proxies-holes, documents)
		require.Equal(b, proxies-holes, entries)
		fmt.Printf("health_sweep proxies=%d blackholes=%d seconds=%.1f writes=%d rss_mb=%d\n", proxies, holes, seconds, p.store.writes.Load(), peakRSS())
	}
	for b.Loop() {
		now := time.Now()
		sweep(now)
		sweep(now.Add(time.Minute))
	}
}

// pusher is a Publisher that plays Pub/Sub: it posts each message at once, in a push envelope; wait
// returns when the message is acknowledged.
type pusher struct{ url string }

func (p *pusher) Publish(ctx context.Context, data []byte) func(context.Context) error {
	done := make(chan error, 1)
	go func() { done <- p.push(ctx, data) }()
	return func(ctx context.Context) error {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *pusher) push(ctx context.Context, data []byte) error {
	body, err := json.Marshal(map[string]any{"message": map[string]any{"data": base64.StdEncoding.EncodeToString(data), "messageId": "1"}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}

// peakRSS is the most memory that this process ever had resident, in megabytes; 0 where unknown.
func peakRSS() int {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")))
			return n >> 10
		}
	}
	return 0
}
