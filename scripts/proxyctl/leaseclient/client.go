// Package leaseclient calls the lease function.
package leaseclient

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
	"strconv"
	"strings"
	"time"
)

// Client calls one lease function. It is safe for concurrent use.
type Client struct {
	base      string
	http      *http.Client
	authorize Authorize
	pause     time.Duration // before a call whose answer was lost is repeated
}

// Authorize returns the bearer token of a call; "" sends none.
type Authorize func(ctx context.Context) (string, error)

// Times of a client.
const (
	// callTimeout bounds one call, above what the call itself waits for a slot.
	callTimeout = 20 * time.Second
	retryPause  = 500 * time.Millisecond
	tries       = 3
	maxAnswer   = 1 << 20 // bytes
)

// New returns a client of the lease function at base, "http://127.0.0.1:8080" for one. authorize may
// be nil.
func New(base string, authorize Authorize) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the lease function's URL must be http://host:port or https://host")
	}
	if u.User != nil {
		return nil, errors.New("the lease function's URL must not hold credentials")
	}
	// The proxy variables are what this client sets for others; its own calls go straight.
	transport := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}
	return &Client{base: strings.TrimSuffix(u.String(), "/"), http: &http.Client{Transport: transport}, authorize: authorize, pause: retryPause}, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request says which lease is wanted. Zero fields leave the choice to the function.
type Request struct {
	RequestID  string            `json:"requestId,omitempty"` // Acquire makes one up, so that it can repeat a call
	Holder     string            `json:"holder,omitempty"`
	TTLSeconds int               `json:"ttlSeconds,omitempty"` // 10..3600
	Labels     map[string]string `json:"labels,omitempty"`
	Provider   string            `json:"provider,omitempty"`
	Region     string            `json:"region,omitempty"`
	Exclude    []string          `json:"exclude,omitempty"`
	Target     string            `json:"target,omitempty"`
	StickyKey  string            `json:"stickyKey,omitempty"`
	// WaitSeconds is how long the function may wait for a free slot, 0..30.
	WaitSeconds int `json:"waitSeconds,omitempty"`
}

// Lease is the right to use one proxy until ExpireTime.
type Lease struct {
	ID    string `json:"id"`
	Proxy struct {
		Name string `json:"name"`
	} `json:"proxy"`
	Endpoint struct {
		URL string `json:"url"` // with credentials
	} `json:"endpoint"`
	ExpireTime time.Time `json:"expireTime"`
	Rebound    bool      `json:"rebound"`
	Draining   bool      `json:"draining"` // the proxy is on its way out
}

// Acquire takes a lease. A call whose answer was lost is repeated and leads to the same lease.
func (c *Client) Acquire(ctx context.Context, r Request) (Lease, error) {
	if r.RequestID == "" {
		r.RequestID = rand.Text()
	}
	var l Lease
	err := c.call(ctx, http.MethodPost, "/v1/leases", r, &l, time.Duration(r.WaitSeconds)*time.Second)
	return l, err
}

// Renew moves a live lease's end to ttl from now; zero means the function's default.
func (c *Client) Renew(ctx context.Context, id string, ttl time.Duration) (Lease, error) {
	var l Lease
	body := map[string]int{}
	if ttl > 0 {
		body["ttlSeconds"] = int(ttl / time.Second)
	}
	err := c.call(ctx, http.MethodPost, "/v1/leases/"+url.PathEscape(id)+":renew", body, &l, 0)
	return l, err
}

// Release gives a lease back with what came of it: ok, banned, timeout, error, or nothing.
func (c *Client) Release(ctx context.Context, id, outcome, target string) error {
	body := map[string]string{}
	if outcome != "" {
		body["outcome"] = outcome
	}
	if target != "" {
		body["target"] = target
	}
	return c.call(ctx, http.MethodPost, "/v1/leases/"+url.PathEscape(id)+":release", body, nil, 0)
}

// Status is what GET /v1/status answers.
type Status struct {
	Version    string         `json:"version"`
	States     map[string]int `json:"states"`
	LiveLeases int            `json:"liveLeases"`
	FreeSlots  int            `json:"freeSlots"`
}

// Status asks how the fleet is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, http.MethodGet, "/v1/status", nil, &s, 0)
}

// call repeats calls whose answer was lost: all of them can be repeated without a second effect.
func (c *Client) call(ctx context.Context, method, path string, in, out any, wait time.Duration) error {
	var err error
	for try := range tries {
		if try > 0 {
			timer := time.NewTimer(c.pause)
			select {
			case <-ctx.Done():
				timer.Stop()
				return err
			case <-timer.C:
			}
		}
		err = c.once(ctx, method, path, in, out, wait)
		if err == nil || !lost(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// lost reports whether the function may be there and has not answered: nothing came, or something in
// front of it answered.
func lost(err error) bool {
	var lost *lostError
	var r *Refusal
	return errors.As(err, &lost) || errors.As(err, &r) && r.Reason == "" && r.Code >= http.StatusInternalServerError
}

// lostError is a call without an answer of the function itself.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

func (c *Client) once(ctx context.Context, method, path string, in, out any, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+wait)
	defer cancel()
	req, err := c.request(ctx, method, path, in)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &lostError{fmt.Errorf("the lease function does not answer: %w", withoutURL(err))}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &lostError{fmt.Errorf("the lease function's answer broke off: %w", err)}
	}
	if resp.StatusCode >= 300 {
		return refusalOf(resp, body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return errors.New("the lease function's answer cannot be read; is the URL the lease function's?") // the answer may hold credentials
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.authorize == nil {
		return req, nil
	}
	token, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// withoutURL drops the lease id that an error of net/http quotes: who knows it can release the lease.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}
