package health

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// A fetch without proxy gets as long as the check that asked for it, within these bounds: below them
// a slow start of ours would look like an outage, above them a message would outlive its deadline.
const (
	minControlTimeout = 10 * time.Second
	maxControlTimeout = 30 * time.Second
	// controlMemory is how long a fetch answers for its tick. Messages of a tick are done with within
	// a minute or so; one that is delivered again much later deserves another look.
	controlMemory = 2 * time.Minute
)

// control tells a dead proxy from a dead target: it fetches a target's URL without any proxy, once
// per tick, however many proxies failed on it.
type control struct {
	prober *Prober
	now    func() time.Time

	mu      sync.Mutex
	fetches map[controlKey]*fetch
}

type controlKey struct {
	tick     time.Time
	url      string
	insecure bool
}

// fetch is one visit to a target, under way until done is closed.
type fetch struct {
	done     chan struct{}
	began    time.Time
	answer   answer
	fault    *fault
	latency  time.Duration
	reported sync.Once
}

func newControl(p *Prober, now func() time.Time) *control {
	return &control{prober: p, now: now, fetches: map[controlKey]*fetch{}}
}

// down reports whether the target itself fails the check in this tick: not reached, not as expected
// or slower than the check allows. first is true for one caller of all that are told so. Its error
// is ctx's.
func (c *control) down(ctx context.Context, tick time.Time, check fleet.HealthCheck) (down, first bool, err error) {
	f := c.fetch(ctx, controlKey{tick, check.URL, check.InsecureSkipVerify}, check)
	select {
	case <-f.done:
	case <-ctx.Done():
		return false, false, ctx.Err()
	}
	r := judged(check)(f.answer, f.fault)
	if r.Outcome == fleet.OutcomeOK && f.latency <= time.Duration(check.TimeoutSeconds)*time.Second {
		return false, false, nil
	}
	f.reported.Do(func() { first = true })
	return true, first, nil
}

// fetch joins the fetch for k, or begins it. It goes on without the caller that began it.
func (c *control) fetch(ctx context.Context, k controlKey, check fleet.HealthCheck) *fetch {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for k, f := range c.fetches {
		if now.Sub(f.began) > controlMemory {
			delete(c.fetches, k)
		}
	}
	if f, ok := c.fetches[k]; ok {
		return f
	}
	f := &fetch{done: make(chan struct{}), began: now}
	c.fetches[k] = f
	timeout := min(max(time.Duration(check.TimeoutSeconds)*time.Second, minControlTimeout), maxControlTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	go func() {
		defer cancel()
		f.answer, f.fault = c.prober.direct(ctx, k.url, k.insecure)
		f.latency = c.now().Sub(f.began)
		close(f.done)
	}()
	return f
}

// direct asks the target itself, and reads its page whatever the status: checks may differ in what
// they expect of the same URL.
func (p *Prober) direct(ctx context.Context, rawURL string, insecure bool) (answer, *fault) {
	u, f := parseURL(rawURL)
	if f != nil {
		return answer{}, f
	}
	host, port, err := net.SplitHostPort(authority(u))
	if err != nil {
		return answer{}, badURL()
	}
	c, f := p.dial(ctx, host, port)
	if f != nil {
		return answer{}, f
	}
	defer c.Close()
	if u.Scheme == "https" {
		if f := c.encrypt(p.tlsConfig(u, insecure)); f != nil {
			return answer{}, f
		}
	}
	return c.get(u, func(code int) bool { return code != http.StatusSwitchingProtocols }, nil, false)
}
