package health

import (
	"context"
	"net"
	"time"
)

// resolver looks names up for one probe. The standard library's own, when its caller gives up, goes
// on waiting for a silent name server; this one lets go with the probe.
func (p *Prober) resolver() *net.Resolver {
	dial := p.DialDNS
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err == nil {
			// Runs at the latest when the query is over, on a connection that is closed by then.
			context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
		}
		return c, err
	}}
}
