// Package lease grants crawlers the use of healthy proxies for a while, and takes it back.
package lease

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"log/slog"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Store is as much of a store as leasing needs.
type Store interface {
	store.Slots
	store.SlotViews
	store.Requests
	store.Catalog
	GetRun(ctx context.Context) (store.Run, error)
}

// Secrets resolves a proxy's credentials.
type Secrets interface {
	Resolve(ctx context.Context, name, key string) (string, error)
}

// Deps is what a Service works with. Rand and ID may be nil: then they are drawn from the system.
type Deps struct {
	Store   Store
	Secrets Secrets
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
	Rand    func() float64 // uniform in [0,1)
	ID      func() string  // 128 random bits or more, of letters and digits
}

// Service grants, renews and takes back leases. One is shared by all requests of an instance; several
// instances meet in the store alone.
type Service struct {
	Deps
	catalog *catalog
	known   *known
	queue   *queue
	turns   *turns
	count   kept[int]
	slots   kept[map[string]int]
	full    fullness
}

// New returns a Service.
func New(d Deps) *Service {
	if d.Rand == nil {
		d.Rand = mathrand.Float64
	}
	if d.ID == nil {
		d.ID = randomID
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{Deps: d, known: newKnown(), queue: newQueue(), turns: newTurns()}
	s.catalog = newCatalog(d.Store, d.Now)
	if d.Metrics != nil {
		measure := s.measure
		d.Metrics.measure.Store(&measure)
	}
	return s
}

// The bounds of a lease's duration.
const (
	DefaultTTL = 300 * time.Second
	MinTTL     = 10 * time.Second
	MaxTTL     = time.Hour
	// Skew is how far clocks of two instances may differ: a slot is taken over only when it expired
	// longer ago.
	Skew = 2 * time.Second
)

// Lease is the right to use a proxy until ExpireTime.
type Lease struct {
	ID           string    `json:"id"`
	FencingToken int64     `json:"fencingToken"` // grows with every holder of the same slot
	Proxy        ProxyInfo `json:"proxy"`
	Endpoint     *Endpoint `json:"endpoint,omitempty"`
	Holder       string    `json:"holder,omitempty"`
	Target       string    `json:"target,omitempty"`
	AcquireTime  time.Time `json:"acquireTime"`
	ExpireTime   time.Time `json:"expireTime"`
	Rebound      bool      `json:"rebound,omitempty"`  // the first choice of the stickyKey could not be given
	Draining     bool      `json:"draining,omitempty"` // the proxy is on its way out: move on
}

// ProxyInfo tells which proxy a lease is on.
type ProxyInfo struct {
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Provider string            `json:"provider,omitempty"`
	Region   string            `json:"region,omitempty"`
}

// Endpoint is how to reach the proxy. URL has it all, percent-encoded, as curl and others take it.
type Endpoint struct {
	Scheme   string `json:"scheme"`
	Host     string `json:"host"`
	Port     int32  `json:"port"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	URL      string `json:"url"`
}

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return idEncoding.EncodeToString(b[:])
}

// leaseID names the slot, so that no look-up is needed to find it.
func leaseID(proxy string, n int, random string) string { return store.SlotID(proxy, n) + "." + random }

// ParseID splits a lease id; ok is false for what never was one.
func ParseID(id string) (proxy string, n int, ok bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 3 || len(parts[0]) == 0 || len(parts[0]) > 63 || len(parts[2]) < 10 || len(parts[2]) > 64 {
		return "", 0, false
	}
	if strings.Trim(parts[0], "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(parts[2], "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "", 0, false
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 0 || n > 100000 || strconv.Itoa(n) != parts[1] {
		return "", 0, false
	}
	return parts[0], n, true
}

// answer builds the lease that a slot stands for. Entry is the proxy's in the catalog; credentials
// are left out when nil.
func answer(s store.Slot, e fleet.Entry, c *credentials) Lease {
	l := Lease{
		ID: s.LeaseID, FencingToken: s.Fence, Holder: s.Holder, Target: s.Target, AcquireTime: s.AcquireTime, ExpireTime: s.ExpireTime,
		Rebound: s.Rebound, Proxy: ProxyInfo{Name: s.Proxy, Labels: e.Labels, Provider: e.Provider, Region: e.Region},
		Draining: draining(s, e),
	}
	if e.Host != "" && s.Incarnation == e.Incarnation {
		l.Endpoint = endpoint(e, c)
	}
	return l
}

// draining reports whether the instance that the slot was granted on is on its way out.
func draining(s store.Slot, e fleet.Entry) bool {
	return e.Gate == fleet.GateDraining || s.Incarnation < e.DrainingBelow
}
