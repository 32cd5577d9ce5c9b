package health

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"time"
)

// userAgent is what proxies and targets see in their logs.
const userAgent = "proxyfleet-health"

// wire is the one connection of a probe: TCP to the proxy, then perhaps a tunnel and TLS on top.
type wire struct {
	tcp  net.Conn
	conn net.Conn      // what is spoken over: tcp or TLS
	in   *bufio.Reader // of tcp; holds what arrived behind the proxy's reply
	stop func() bool

	tunneled bool // the proxy has promised to pass on what we send
	heard    bool // the first byte of the answer has come
}

// dial connects. Everything that the wire does ends when ctx ends.
func (p *Prober) dial(ctx context.Context, host, port string) (*wire, *fault) {
	d := net.Dialer{Resolver: p.resolver()}
	tcp, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, dialFault(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(time.Unix(1, 0)) })
	return &wire{tcp: tcp, conn: tcp, in: bufio.NewReader(tcp), stop: stop}, nil
}

// Close drops the connection. It sends no TLS farewell: that could block on a peer that does not read.
func (w *wire) Close() {
	w.stop()
	_ = w.tcp.Close()
}

// encrypt starts TLS with the target. What arrived behind the proxy's reply belongs to the tunnel.
func (w *wire) encrypt(config *tls.Config) *fault {
	t := tls.Client(buffered{w.tcp, w.in}, config)
	if err := t.Handshake(); err != nil { // bounded by the deadline that dial set up
		return w.handshakeFault(err)
	}
	w.conn = t
	w.in = bufio.NewReader(t)
	return nil
}

// get asks for u and reads the answer, with its page where the status is one of those wanted.
// absolute is the form in which a proxy is asked; it may get credentials.
func (w *wire) get(u *url.URL, wanted func(code int) bool, c *Credentials, absolute bool) (answer, *fault) {
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Close: true, Header: http.Header{
		"User-Agent":      {userAgent},
		"Accept":          {"*/*"},
		"Accept-Encoding": {"identity"}, // the marker is looked for in the page as it is
		"Cache-Control":   {"no-cache"}, // a cache on the way would answer for a dead path
	}}
	write := req.Write
	if absolute {
		write = req.WriteProxy
		if c != nil {
			req.Header.Set("Proxy-Authorization", c.basic())
		}
	}
	if err := write(w.conn); err != nil {
		return answer{}, w.fault(err)
	}
	return w.read(req, absolute, wanted)
}

func (p *Prober) tlsConfig(u *url.URL, insecure bool) *tls.Config {
	return &tls.Config{
		ServerName:         u.Hostname(),
		RootCAs:            p.RootCAs,
		NextProtos:         []string{"http/1.1"},
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: insecure, //nolint:gosec // the document's own choice
	}
}

func (c *Credentials) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password))
}

// buffered is a connection of which some bytes have been read already.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }
