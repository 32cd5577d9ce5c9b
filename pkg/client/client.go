// Package client leases proxies for Go crawlers: by call, kept alive, or beneath an http.Client.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one lease function. It is safe for concurrent use.
type Client struct {
	base  string
	token Token
	http  *http.Client
	pause time.Duration // before a call is repeated
}

// Token returns the bearer token of a call: an API key or a Google ID token; "" sends none. It is
// asked before each call, so that a token that ends can be replaced.
type Token func(ctx context.Context) (string, error)

// Config says whom to call. URL is needed, the rest may be nil.
type Config struct {
	URL   string // of the lease function, such as https://lease-abc.a.run.app
	Token Token
	HTTP  *http.Client // for the calls to the lease function; nil: one that goes straight, through no proxy
}

const (
	// callTimeout bounds one try of a call, beyond the time that the call itself waits for a slot.
	callTimeout = 20 * time.Second
	// tries is how often a call is made whose answer was lost.
	tries      = 4
	firstPause = 250 * time.Millisecond
	maxAnswer  = 4 << 20 // bytes
)

// New returns a client. The error says what is wrong with the URL and does not repeat it.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the lease function's URL must be http://HOST or https://HOST")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the lease function's URL must have no credentials, query or fragment")
	}
	if c.HTTP == nil {
		// HTTP_PROXY and its like are for the crawl, not for these calls.
		c.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}}
	}
	return &Client{base: strings.TrimRight(u.String(), "/"), token: c.Token, http: c.HTTP, pause: firstPause}, nil
}

// Request says which lease is wanted. Zero fields leave the choice to the function.
type Request struct {
	RequestID   string            `json:"requestId,omitempty"` // made up when empty, so that a lost answer can be asked for again
	Holder      string            `json:"holder,omitempty"`    // who asks, for people; the token's owner by default
	TTLSeconds  int               `json:"ttlSeconds,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Provider    string            `json:"provider,omitempty"`
	Region      string            `json:"region,omitempty"`
	Exclude     []string          `json:"exclude,omitempty"`     // names of proxies, at most 100
	Target      string            `json:"target,omitempty"`      // host that will be fetched: proxies that it has banned are left out
	StickyKey   string            `json:"stickyKey,omitempty"`   // the same proxy for the same key, while that is ready
	WaitSeconds int               `json:"waitSeconds,omitempty"` // how long to wait for a slot, at most 30
}

// Lease is the right to use a proxy until ExpireTime, which is the server's time.
type Lease struct {
	ID           string    `json:"id"` // who knows it can renew and release the lease
	FencingToken int64     `json:"fencingToken"`
	Proxy        Proxy     `json:"proxy"`
	Endpoint     Endpoint  `json:"endpoint"`
	Holder       string    `json:"holder"`
	Target       string    `json:"target"`
	AcquireTime  time.Time `json:"acquireTime"`
	ExpireTime   time.Time `json:"expireTime"`
	Rebound      bool      `json:"rebound"`  // not the StickyKey's first choice
	Draining     bool      `json:"draining"` // the proxy is on its way out: finish, and take another lease

	// Left is how long the lease lasted from the moment that the call was sent, by the server's clock
	// alone. It may be short of the truth by a second, and is never beyond it.
	Left time.Duration `json:"-"`
}

// Proxy is what a lease is on.
type Proxy struct {
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels"`
	Provider string            `json:"provider"`
	Region   string            `json:"region"`
}

// Endpoint is how the proxy is reached. URL holds all of it. It is empty when a renewal finds the
// proxy's machine replaced.
type Endpoint struct {
	Scheme   string `json:"scheme"`
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Username string `json:"username"`
	Password string `json:"password"`
	URL      string `json:"url"`
}

// Outcome is what came of a crawl.
type Outcome string

// The outcomes. The zero Outcome says nothing.
const (
	OK      Outcome = "ok"
	Banned  Outcome = "banned" // by the target
	Timeout Outcome = "timeout"
	Failed  Outcome = "error"
)

// Acquire takes a lease. A refusal is a *Refusal.
func (c *Client) Acquire(ctx context.Context, r Request) (Lease, error) {
	if r.RequestID == "" {
		r.RequestID = rand.Text()
	}
	return c.lease(ctx, "/v1/leases", r, time.Duration(r.WaitSeconds)*time.Second)
}

// Renew moves a live lease's end to ttl from now, whole seconds from 10 to 3600; zero is the
// function's default and never shortens. A lease that has ended stays so: see Ended.
func (c *Client) Renew(ctx context.Context, id string, ttl time.Duration) (Lease, error) {
	body := map[string]any{}
	if ttl > 0 {
		body["ttlSeconds"] = int(ttl / time.Second)
	}
	return c.lease(ctx, "/v1/leases/"+url.PathEscape(id)+":renew", body, 0)
}

// Release gives a lease back. Giving it back twice is no error. target is the host that the outcome
// is about; the lease's own when empty.
func (c *Client) Release(ctx context.Context, id string, o Outcome, target string) error {
	return c.tell(ctx, id, "release", o, target)
}

// Report tells what came of a crawl and keeps the lease.
func (c *Client) Report(ctx context.Context, id string, o Outcome, target string) error {
	return c.tell(ctx, id, "report", o, target)
}

func (c *Client) tell(ctx context.Context, id, verb string, o Outcome, target string) error {
	body := map[string]any{}
	if o != "" {
		body["outcome"] = o
	}
	if target != "" {
		body["target"] = target
	}
	_, err := c.call(ctx, "/v1/leases/"+url.PathEscape(id)+":"+verb, body, nil, 0)
	return err
}

func (c *Client) lease(ctx context.Context, path string, in any, wait time.Duration) (Lease, error) {
	var l Lease
	at, err := c.call(ctx, path, in, &l, wait)
	if err != nil {
		return Lease{}, err
	}
	l.Left = l.ExpireTime.Sub(at)
	return l, nil
}

// call posts in and reads the answer into out. It repeats a call whose answer was lost, as every call
// can be repeated without a second effect. It returns the server's time of the answer, rounded up.
func (c *Client) call(ctx context.Context, path string, in, out any, wait time.Duration) (time.Time, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return time.Time{}, err
	}
	pause := c.pause
	for try := 1; ; try++ {
		at, err := c.once(ctx, path, body, out, wait)
		var lost *lostError
		if try == tries || !errors.As(err, &lost) {
			return at, err
		}
		if sleep(ctx, pause) != nil {
			return at, err
		}
		pause *= 2
	}
}

// lostError is a call that the function may have served or not.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

func (c *Client) once(ctx context.Context, path string, body []byte, out any, wait time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return time.Time{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return time.Time{}, fmt.Errorf("get a token for the lease function: %w", err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return time.Time{}, &lostError{fmt.Errorf("call the lease function: %w", withoutURL(err))}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return time.Time{}, &lostError{fmt.Errorf("read the lease function's answer: %w", err)}
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return time.Time{}, refusal(resp, answer)
	}
	if out != nil && json.Unmarshal(answer, out) != nil {
		return time.Time{}, errors.New("read the lease function's answer: it is no lease; is this the lease function's URL?") // nothing of the answer: it may hold credentials
	}
	return serverTime(resp), nil
}

// withoutURL drops the path that net/http quotes, as a lease's id is in it.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
