package lease

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wire is one crawler's HTTP connection, with as little work on its side as a load generator should
// make: what is measured is the function.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

func dialWire(tb testing.TB, address string) *wire {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	return &wire{conn: conn, in: bufio.NewReader(conn)}
}

// post sends one request and returns status and body, which is good until the next call.
func (w *wire) post(path, body string) (int, []byte, error) {
	_, err := fmt.Fprintf(w.conn, "POST %s HTTP/1.1\r\nHost: lease\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	if err != nil {
		return 0, nil, err
	}
	line, err := w.in.ReadSlice('\n')
	if err != nil || len(line) < len("HTTP/1.1 200") {
		return 0, nil, fmt.Errorf("read status: %w", err)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, nil, err
	}
	length := -1
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return 0, nil, err
			}
		}
	}
	if length < 0 {
		return 0, nil, fmt.Errorf("answer %d has no length", status)
	}
	if cap(w.body) < length {
		w.body = make([]byte, length)
	}
	w.body = w.body[:length]
	_, err = io.ReadFull(w.in, w.body)
	return status, w.body, err
}

// leaseIDIn finds the lease's id in an answer, where it comes first.
func leaseIDIn(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}
