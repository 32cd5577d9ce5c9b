package gateway

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// tunnel serves CONNECT: it opens a tunnel through a leased proxy and passes bytes both ways.
func (g *Gateway) tunnel(w http.ResponseWriter, r *http.Request) {
	target := r.Host
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		http.Error(w, "CONNECT needs host:port", http.StatusBadRequest)
		return
	}
	err = g.attempt(r, host, func(h *held) (Outcome, bool, error) {
		upstream, err := dialThrough(r.Context(), h.lease.URL, target, g.config.DialTimeout)
		if err != nil {
			return failure(err), true, err
		}
		defer upstream.Close()
		if err := splice(w, upstream); err != nil {
			return OK, false, nil // the answer has begun; what became of it is the crawler's to judge
		}
		return OK, false, nil
	})
	if err != nil {
		refuse(w, err)
	}
}

// failure tells a proxy that was too slow from one that failed.
func failure(err error) Outcome {
	var netErr net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout() {
		return Timeout
	}
	return Failed
}

// conn is a connection of which some bytes were read ahead.
type conn struct {
	net.Conn
	r io.Reader
}

func (c *conn) Read(b []byte) (int, error) { return c.r.Read(b) }

// dialThrough opens a tunnel to target through the proxy at proxyURL.
func dialThrough(ctx context.Context, proxyURL, target string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u, err := url.Parse(proxyURL)
	if err != nil {
		return nil, errors.New("the lease's URL cannot be read") // not the error: it quotes the URL
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	buffered, err := openTunnel(c, u.User, target)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return &conn{Conn: c, r: buffered}, nil
}

func openTunnel(c net.Conn, user *url.Userinfo, target string) (*bufio.Reader, error) {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if user != nil {
		password, _ := user.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := req.Write(c); err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(c)
	resp, err := http.ReadResponse(buffered, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy refused the tunnel: %s", resp.Status)
	}
	return buffered, nil
}

// splice takes the crawler's connection over, says that the tunnel is open, and passes bytes until
// both sides are done.
func splice(w http.ResponseWriter, upstream net.Conn) error {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer client.Close()
	_ = client.SetDeadline(time.Time{})
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { pass(upstream, buffered) })
	wg.Go(func() { pass(client, upstream) })
	wg.Wait()
	return nil
}

// pass copies until src ends, then lets dst know that no more will come.
func pass(dst net.Conn, src io.Reader) {
	_, err := io.Copy(dst, src)
	if c, ok := dst.(*conn); ok {
		dst = c.Conn
	}
	if half, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = dst.Close()
}
