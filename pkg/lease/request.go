package lease

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

const maxList = 100

var (
	tokenPattern = regexp.MustCompile(`^[\x21-\x7e]+$`)
	hostPattern  = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]+$`)
	namePattern  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

const acquireFields = "requestId, holder, ttlSeconds, labels, provider, region, exclude, target, stickyKey, waitSeconds"

// acquireRequest reads what POST /v1/leases takes. holder is the default one.
func (b *body) acquireRequest(holder string) Request {
	r := Request{
		RequestID: b.text("requestId", 200, tokenPattern, "visible ASCII characters, such as a UUID"),
		Holder:    b.text("holder", 200, nil, ""),
		TTL:       b.ttl(DefaultTTL),
		StickyKey: b.text("stickyKey", 500, nil, ""),
		Wait:      time.Duration(b.whole("waitSeconds", 0, 30, 0)) * time.Second,
		Filter: Filter{
			Labels:   b.labels("labels"),
			Provider: b.text("provider", 63, namePattern, "a provider's name"),
			Region:   b.text("region", 63, namePattern, "a region's name"),
			Exclude:  b.list("exclude"),
			Target:   b.target(),
		},
	}
	if r.Holder == "" {
		r.Holder = holder
	}
	return r
}

func (b *body) ttl(missing time.Duration) time.Duration {
	low, high := int(MinTTL/time.Second), int(MaxTTL/time.Second)
	return time.Duration(b.whole("ttlSeconds", low, high, int(missing/time.Second))) * time.Second
}

// target is a host as bans are counted by: without the port that some crawlers leave on it.
func (b *body) target() string {
	host := b.text("target", 260, hostPattern, "a host name without scheme and path")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return fleet.QuarantineKey(strings.Trim(host, "[]"))
}

func (b *body) outcome(required bool) Outcome {
	o := Outcome(b.text("outcome", 20, nil, ""))
	switch o {
	case OutcomeOK, OutcomeBanned, OutcomeTimeout, OutcomeError:
	case "":
		if required {
			b.fail(invalid("outcome", "must be ok, banned, timeout or error"))
		}
	default:
		b.fail(invalid("outcome", "must be ok, banned, timeout or error"))
	}
	return o
}

// queryFilter reads ?label=k=v&state=S of discovery.
func queryFilter(r *http.Request) (Filter, string, error) {
	q := r.URL.Query()
	f := Filter{Labels: map[string]string{}}
	for key, values := range q {
		switch key {
		case "label":
			for _, v := range values {
				k, val, ok := strings.Cut(v, "=")
				if !ok || k == "" {
					return f, "", invalid("label", "must be k=v")
				}
				f.Labels[k] = val
			}
		case "state":
			if state := q.Get("state"); !slices.Contains(states(), state) {
				return f, "", invalid("state", "must be one of %s", strings.Join(states(), ", "))
			}
		default:
			return f, "", invalid(printable(key), "unknown parameter; known are label, state")
		}
	}
	return f, q.Get("state"), nil
}

// retryAfter is the header's value, whole seconds.
func retryAfter(d time.Duration) string {
	return fmt.Sprint(int((d + time.Second - 1) / time.Second))
}
