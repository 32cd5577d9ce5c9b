package gce

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"google.golang.org/api/option"
	htransport "google.golang.org/api/transport/http"
)

// client is an open connection to the API.
type client struct {
	endpoint   string
	timeout    time.Duration
	transport  http.RoundTripper // with credentials
	idle       func()            // closes idle connections
	instances  *compute.InstancesClient
	operations *compute.ZoneOperationsClient
}

// open finds credentials and builds the clients. No request is made by it, except that finding
// credentials may ask the metadata server.
func open(ctx context.Context, s settings) (*client, error) {
	c := &client{endpoint: s.Endpoint, timeout: s.RequestTimeout}
	if s.plain {
		plain := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second}
		c.transport, c.idle = plain, plain.CloseIdleConnections
	} else {
		// The credentials outlive the call that happens to be the first.
		authed, _, err := htransport.NewClient(context.WithoutCancel(ctx), option.WithScopes(compute.DefaultAuthScopes()...))
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		c.transport, c.idle = authed.Transport, authed.CloseIdleConnections
	}
	var err error
	opts := c.options(&bounded{base: c.transport, timeout: c.timeout})
	if c.instances, err = compute.NewInstancesRESTClient(ctx, opts...); err != nil {
		return nil, err
	}
	c.operations, err = compute.NewZoneOperationsRESTClient(ctx, opts...)
	return c, err
}

func (c *client) options(transport http.RoundTripper) []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint(c.endpoint),
		option.WithHTTPClient(&http.Client{Transport: transport}),
	}
}

// forList returns clients for one listing. The paged methods of the library build their requests
// without the context that they are given, so nothing would ever end them; these carry ctx in their
// transport. They cost no connection of their own.
func (c *client) forList(ctx context.Context) (*compute.InstancesClient, *compute.ZoneOperationsClient, error) {
	opts := c.options(&bounded{base: c.transport, timeout: c.timeout, ctx: ctx})
	instances, err := compute.NewInstancesRESTClient(ctx, opts...)
	if err != nil {
		return nil, nil, err
	}
	operations, err := compute.NewZoneOperationsRESTClient(ctx, opts...)
	return instances, operations, err
}

func (c *client) close() { c.idle() }

// bounded gives every request a deadline and, where ctx is set, that context instead of its own.
type bounded struct {
	base    http.RoundTripper
	timeout time.Duration
	ctx     context.Context // of one listing, see forList
}

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if b.ctx != nil {
		ctx = b.ctx
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	resp, err := b.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelBody{resp.Body, cancel}
	return resp, nil
}

// cancelBody ends the request's context with its answer.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
