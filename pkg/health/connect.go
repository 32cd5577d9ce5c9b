package health

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// maxHead bounds the head of an answer; the largest that servers commonly send are 32 KiB.
const maxHead = 64 << 10

var (
	statusLine = regexp.MustCompile(`^HTTP/1\.[0-9] ([1-9][0-9]{2})( .*)?$`)

	errNotHTTP  = errors.New("not HTTP")
	errLongHead = errors.New("head too long")
)

// connect asks the proxy for a tunnel to target. Only a final 2xx opens one: its headers, a
// Content-Length among them, mean nothing (RFC 9110, section 9.3.6).
func (w *wire) connect(target string, c *Credentials) *fault {
	head := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nUser-Agent: " + userAgent + "\r\n"
	if c != nil {
		head += "Proxy-Authorization: " + c.basic() + "\r\n"
	}
	if _, err := io.WriteString(w.tcp, head+"\r\n"); err != nil {
		return w.fault(err)
	}
	code, err := readFinalCode(w.in)
	switch {
	case errors.Is(err, errNotHTTP), errors.Is(err, errLongHead):
		return &fault{outcome: fleet.OutcomeProxyError, detail: "the reply to CONNECT is not HTTP"}
	case err != nil:
		return w.fault(err)
	case code == 407:
		return unauthorized()
	case code < 200 || code > 299:
		return &fault{outcome: fleet.OutcomeProxyError, detail: fmt.Sprintf("CONNECT answered %d", code)}
	}
	w.tunneled = true
	return nil
}

func unauthorized() *fault {
	return &fault{outcome: fleet.OutcomeAuthFailed, detail: "the proxy answered 407", certain: true}
}

// readFinalCode reads heads, skipping interim ones, and returns the final one's status. What follows
// stays in r.
func readFinalCode(r *bufio.Reader) (int, error) {
	left := maxHead
	for {
		line, err := readLine(r, &left)
		if err != nil {
			return 0, err
		}
		m := statusLine.FindStringSubmatch(line)
		if m == nil {
			return 0, errNotHTTP
		}
		for line != "" {
			if line, err = readLine(r, &left); err != nil {
				return 0, err
			}
		}
		code, _ := strconv.Atoi(m[1])
		if code >= 200 || code == 101 {
			return code, nil
		}
	}
}

// readLine reads up to a line feed, of left bytes at most, and returns the line without its end.
func readLine(r *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if *left--; *left < 0 {
			return "", errLongHead
		}
		if b == '\n' {
			break
		}
		line = append(line, b)
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return string(line), nil
}
