package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/client"
	"crawl.example.com/proxyfleet/scripts/proxyctl/gateway"
)

func (c *cli) gatewayCommand() *cobra.Command {
	var f leaseFlags
	var listen, rotate, ban string
	var attempts int
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "A forward proxy on this machine that leases its way out and rotates",
		Long: `Gateway is a proxy for crawlers that know nothing of leases: set http_proxy and https_proxy to it. It takes a lease for each request
or tunnel (--rotate request), keeps each crawler on one proxy for each host (sticky), or moves on after a time (30s). A proxy that
fails before anything was answered is replaced by another. Answers with a status of --ban count as a ban of that host; inside
https nobody but the crawler sees the status. Crawlers that share a gateway are told apart by the user name they give to it.
` + authHelp,
		Example: "  proxyctl gateway --listen 127.0.0.1:3128 --label pool=news &\n  https_proxy=http://127.0.0.1:3128 curl https://example.com/",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := gateway.Config{Attempts: attempts, Now: c.now, Log: slog.New(slog.NewTextHandler(c.errs, nil))}
			var err error
			if config.Rotation, err = gateway.ParseRotation(rotate); err != nil {
				return usageError{fmt.Errorf("--rotate %w", err)}
			}
			if config.BanStatuses, err = gateway.ParseStatuses(ban); err != nil {
				return usageError{fmt.Errorf("--ban %w", err)}
			}
			if attempts < 1 || attempts > 10 {
				return usageError{errors.New("--attempts must be between 1 and 10")}
			}
			req, err := f.request()
			if err != nil {
				return err
			}
			leases, err := f.client()
			if err != nil {
				return err
			}
			return c.gateway(cmd.Context(), listen, gateway.New(leaser{client: leases, like: req, now: c.now}, config))
		},
	}
	f.add(cmd, gatewayWait)
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:3128", "address to listen on")
	cmd.Flags().StringVar(&rotate, "rotate", "request", "request, sticky or a duration such as 30s")
	cmd.Flags().StringVar(&ban, "ban", "403,429", "statuses that count as a ban")
	cmd.Flags().IntVar(&attempts, "attempts", 3, "leases that one request may use up, 1 to 10")
	return cmd
}

// gatewayWait is how long a request waits for a slot: its crawler knows nothing of leases, and would take
// a refusal for an error of the site's. Crawlers themselves wait for some half a minute.
const gatewayWait = 10 * time.Second

// closeTimeout bounds how long leases are given back at the end.
const closeTimeout = 10 * time.Second

func (c *cli) gateway(ctx context.Context, listen string, g *gateway.Gateway) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	fmt.Fprintf(c.out, "gateway on http://%s\n", l.Addr())
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintln(c.errs, "proxyctl: whoever reaches this address can use your proxies")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { g.Run(ctx) })
	var failed error
	wg.Go(func() {
		defer stop()
		failed = server.Serve(l)
	})
	<-ctx.Done()
	_ = server.Close()
	wg.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	g.Close(closing)
	if errors.Is(failed, http.ErrServerClosed) {
		return nil
	}
	return failed
}

// leaser leases for a gateway, always with the same filter.
type leaser struct {
	client *client.Client
	like   client.Request
	now    func() time.Time
}

// Acquire takes a lease.
func (l leaser) Acquire(ctx context.Context, r gateway.Request) (gateway.Lease, error) {
	req := l.like
	req.Target, req.StickyKey, req.Exclude = r.Target, r.StickyKey, r.Exclude
	asked := l.now()
	lease, err := l.client.Acquire(ctx, req)
	var refusal *client.Refusal
	if errors.As(err, &refusal) && refusal.Code == http.StatusServiceUnavailable {
		return gateway.Lease{}, &gateway.Unavailable{Reason: why(err), RetryAfter: refusal.RetryAfter}
	}
	return gatewayLease(lease, asked), err
}

// Renew keeps a lease.
func (l leaser) Renew(ctx context.Context, id string) (gateway.Lease, error) {
	asked := l.now()
	lease, err := l.client.Renew(ctx, id, time.Duration(l.like.TTLSeconds)*time.Second)
	return gatewayLease(lease, asked), err
}

// Release gives a lease back.
func (l leaser) Release(ctx context.Context, id string, outcome gateway.Outcome, target string) error {
	return l.client.Release(ctx, id, client.Outcome(outcome), target)
}

// gatewayLease counts the end from when the lease was asked for, as this machine's clock may be wrong.
func gatewayLease(l client.Lease, asked time.Time) gateway.Lease {
	return gateway.Lease{ID: l.ID, Proxy: l.Proxy.Name, URL: l.Endpoint.URL, ExpireTime: asked.Add(l.Left), Draining: l.Draining}
}
