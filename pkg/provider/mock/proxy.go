package mock

import (
	"context"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"
)

// dialTimeout is how long the proxy tries to reach a target.
const dialTimeout = 10 * time.Second

// proxy is what an instance serves: CONNECT tunnels, and plain HTTP requests with an absolute URL.
type proxy struct {
	listener *listener
	forward  http.Handler
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.listener.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.listener.serving.Done()
	switch {
	case !p.listener.allows(credentialsOf(r)):
		w.Header().Set("Proxy-Authenticate", `Basic realm="mock proxy"`)
		http.Error(w, "credentials are needed", http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a proxy: CONNECT, or a request for an absolute http URL", http.StatusBadRequest)
	}
}

// credentialsOf returns the user:password of a request; empty when there is none.
func credentialsOf(r *http.Request) string {
	scheme, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	return string(decoded)
}

// newForward returns a handler that passes plain requests on. It keeps no connection, so that nothing
// outlives its request.
func newForward() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // byte for byte
			r.Out.Host = r.In.Host
		},
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
}

// tunnel joins the client with the target until both have said all that they have to say, or the port
// is closed.
func tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = target.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusHTTPVersionNotSupported)
		return
	}
	defer func() { _ = client.Close() }()
	stop := context.AfterFunc(r.Context(), func() {
		_ = client.Close()
		_ = target.Close()
	})
	defer stop()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// Past what is buffered the server's reader must not be used: at the client's last word it would
	// end the request's context, and with it the answer.
	early := io.LimitReader(buffered, int64(buffered.Reader.Buffered()))
	var both sync.WaitGroup
	both.Go(func() { pass(target, io.MultiReader(early, client)) })
	both.Go(func() { pass(client, target) })
	both.Wait()
}

// pass copies until from ends, then tells to that this is all: the other direction goes on. A to that
// takes no more has been reset, so the copy the other way ends by itself.
func pass(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
