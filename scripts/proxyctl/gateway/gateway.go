// Package gateway is a forward proxy on the crawler's machine that leases its way out behind the scenes.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lease is the right to use one proxy for a while.
type Lease struct {
	ID         string
	Proxy      string // name of the proxy
	URL        string // http://user:password@host:port of the proxy
	ExpireTime time.Time
	Draining   bool // the proxy is on its way out: requests under way may end, new ones go elsewhere
}

// Outcome is what a crawl through a lease came to; see the lease protocol.
type Outcome string

// The outcomes that a release tells.
const (
	OK      Outcome = "ok"
	Banned  Outcome = "banned"
	Timeout Outcome = "timeout"
	Failed  Outcome = "error"
)

// Request says which lease is wanted.
type Request struct {
	Target    string   // host that will be fetched
	StickyKey string   // the same proxy for the same key, where possible
	Exclude   []string // names of proxies that have just failed
}

// Leaser is the lease function, as much of it as a gateway needs. Errors of Acquire that are an
// *Unavailable are passed on to the crawler with their reason.
type Leaser interface {
	Acquire(ctx context.Context, r Request) (Lease, error)
	Renew(ctx context.Context, id string) (Lease, error)
	Release(ctx context.Context, id string, outcome Outcome, target string) error
}

// Unavailable is a refusal that time may heal.
type Unavailable struct {
	Reason     string
	RetryAfter time.Duration
}

// Error says why there is no lease.
func (u *Unavailable) Error() string { return "no lease: " + u.Reason }

// Config is how a gateway behaves; zero fields mean the defaults.
type Config struct {
	Rotation    Rotation
	Attempts    int           // leases that one request may use up; default 3
	DialTimeout time.Duration // for reaching a proxy and opening its tunnel; default 10s
	BanStatuses []int         // answers of a target that count as a ban; default 403 and 429
	Log         *slog.Logger  // default: none
	Now         func() time.Time
}

// Gateway is an http.Handler that proxies CONNECT and absolute-form requests. Close it to give all
// leases back.
type Gateway struct {
	config Config
	pool   *pool
}

// New returns a gateway over l.
func New(l Leaser, c Config) *Gateway {
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.BanStatuses == nil {
		c.BanStatuses = []int{http.StatusForbidden, http.StatusTooManyRequests}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Gateway{config: c, pool: newPool(l, c)}
}

// Close gives all leases back, within ctx.
func (g *Gateway) Close(ctx context.Context) { g.pool.close(ctx) }

// Run renews and retires leases until ctx ends.
func (g *Gateway) Run(ctx context.Context) { g.pool.run(ctx) }

// ServeHTTP proxies one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		g.tunnel(w, r)
	case r.URL.IsAbs() && r.URL.Scheme == "http":
		g.forward(w, r)
	default:
		http.Error(w, "this is a proxy: set it as HTTP_PROXY and HTTPS_PROXY", http.StatusBadRequest)
	}
}

// attempt runs use with one lease after another until it answers, fails for good, or the attempts are
// used up. use reports whether another lease is worth a try.
func (g *Gateway) attempt(r *http.Request, target string, use func(h *held) (outcome Outcome, again bool, err error)) error {
	var failed []string
	var err error
	for range g.config.Attempts {
		h, noLease := g.pool.take(r.Context(), clientKey(r), target, failed)
		switch {
		case noLease != nil && err != nil: // what went wrong first is what people must know
			return fmt.Errorf("%w; then %s", err, noLease.Error())
		case noLease != nil:
			return noLease
		}
		outcome, again, useErr := use(h)
		g.pool.give(h, outcome, target)
		if useErr == nil || !again {
			return useErr
		}
		err = useErr
		failed = append(failed, h.lease.Proxy)
		g.config.Log.Info("proxy failed, trying another", "proxy", h.lease.Proxy, "target", target, "error", useErr.Error())
	}
	return err
}

// refuse answers the crawler when nothing has been answered yet.
func refuse(w http.ResponseWriter, err error) {
	var u *Unavailable
	if errors.As(err, &u) {
		if u.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int((u.RetryAfter+time.Second-1)/time.Second)))
		}
		http.Error(w, u.Error(), http.StatusServiceUnavailable)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		http.Error(w, "no proxy answered in time: "+err.Error(), http.StatusGatewayTimeout)
		return
	}
	http.Error(w, "no proxy could do it: "+err.Error(), http.StatusBadGateway)
}

// clientKey tells crawlers apart who share a gateway: the user name that they give to it.
func clientKey(r *http.Request) string {
	r2 := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	user, _, _ := r2.BasicAuth()
	return user
}

func (g *Gateway) banned(status int) bool { return slices.Contains(g.config.BanStatuses, status) }

// ParseStatuses reads "403,429".
func ParseStatuses(s string) ([]int, error) {
	var out []int
	for _, field := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 100 || n > 599 {
			return nil, fmt.Errorf("%q: must be status codes such as 403,429", s)
		}
		out = append(out, n)
	}
	return out, nil
}
