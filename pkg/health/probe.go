package health

import (
	"context"
	"crypto/x509"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// maxTimeout is the longest that the rules allow; a document that breaks them must not hold up others.
const maxTimeout = time.Minute

// Request is one probe: through which proxy, and what must come back.
type Request struct {
	Host        string // name, IPv4 or IPv6 literal
	Port        int32
	Credentials *Credentials      // nil: the proxy asks for none
	Check       fleet.HealthCheck // with its defaults filled in
	Timeout     time.Duration     // of the whole probe; zero: as Check says
}

// Credentials are what the proxy asks for. The password may hold any byte.
type Credentials struct{ Username, Password string }

// Result is what one probe has shown. Detail is for people: it is made of our own words and of
// numbers, never of text that the other side sent, so that nobody can have us store a secret.
type Result struct {
	Outcome     fleet.Outcome
	Detail      string
	Latency     time.Duration
	ExitAddress string // where the proxy's traffic comes from, when the check asks and the target tells
	// Certain says that the failure is the proxy's own word: nothing that the target does or fails
	// to do could have caused it.
	Certain bool
}

// Prober makes requests through proxies. Its zero value uses the system's authorities, name servers
// and clock. It is safe for concurrent use.
type Prober struct {
	RootCAs *x509.CertPool   // authorities of targets; nil: the system's
	Now     func() time.Time // nil: time.Now
	// DialDNS connects to a name server; nil: net.Dialer's.
	DialDNS func(ctx context.Context, network, address string) (net.Conn, error)
}

// Probe asks for r.Check.URL through the proxy, once, over connections of its own that are closed
// when it returns. An http URL goes to the proxy in absolute form, an https URL through a tunnel.
// Redirects are not followed; at most MaxBody bytes of the page are read. Timeouts before the
// proxy gave a sign that it serves us are OutcomeConnectTimeout, later ones OutcomeTimeout. When ctx
// ends first, or this machine has no sockets left, the outcome is OutcomeInconclusive.
func (p *Prober) Probe(ctx context.Context, r Request) Result {
	start := p.now()
	limited, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	result := judged(r.Check)(p.through(limited, r))
	result.Latency = p.now().Sub(start)
	if result.Outcome != fleet.OutcomeOK && ctx.Err() != nil {
		// The caller gave up first; whatever broke may have broken because of that.
		result = Result{Outcome: fleet.OutcomeInconclusive, Detail: "the probe was interrupted", Latency: result.Latency}
	}
	return result
}

// judged turns an answer, or why there is none, into a result.
func judged(check fleet.HealthCheck) func(answer, *fault) Result {
	return func(a answer, f *fault) Result {
		if f != nil {
			return f.result()
		}
		return a.result(check)
	}
}

// through asks a proxy.
func (p *Prober) through(ctx context.Context, r Request) (answer, *fault) {
	u, f := parseURL(r.Check.URL)
	if f != nil {
		return answer{}, f
	}
	c, f := p.dial(ctx, strings.Trim(r.Host, "[]"), strconv.Itoa(int(r.Port)))
	if f != nil {
		return answer{}, f
	}
	defer c.Close()
	wanted := func(code int) bool { return expected(code, r.Check) }
	if u.Scheme == "http" {
		return c.get(u, wanted, r.Credentials, true)
	}
	if f := c.connect(authority(u), r.Credentials); f != nil {
		return answer{}, f
	}
	if f := c.encrypt(p.tlsConfig(u, r.Check.InsecureSkipVerify)); f != nil {
		return answer{}, f
	}
	return c.get(u, wanted, nil, false)
}

func (p *Prober) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

func (r Request) timeout() time.Duration {
	if r.Timeout > 0 {
		return r.Timeout
	}
	return min(time.Duration(r.Check.TimeoutSeconds)*time.Second, maxTimeout)
}

// parseURL accepts what the rules of the document accept; anything else says nothing of the proxy.
func parseURL(s string) (*url.URL, *fault) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, badURL()
	}
	return u, nil
}

func badURL() *fault {
	return &fault{outcome: fleet.OutcomeInconclusive, detail: "the health check's url is not an http or https URL"}
}

// authority is host:port of a URL, IPv6 in brackets.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
