package health

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
)

// recorder keeps what is read off a connection.
type recorder struct{ buf bytes.Buffer }

func (r *recorder) tap(c net.Conn) net.Conn { return tapped{c, r} }

func (r *recorder) header() http.Header {
	req, err := http.ReadRequest(bufio.NewReader(&r.buf))
	if err != nil {
		return http.Header{}
	}
	return req.Header
}

type tapped struct {
	net.Conn
	rec *recorder
}

func (t tapped) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.rec.buf.Write(p[:n])
	return n, err
}
