package gce

import (
	"context"
	"errors"

	"cloud.google.com/go/compute/apiv1/computepb"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Get returns the instance that ref names. Absent from the zone that ref hints at, it is looked for in
// the others before it is called absent; without a hint, a zone that does not answer makes that
// impossible and the error transient.
func (p *Provider) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	c, err := p.connect(ctx)
	if err != nil {
		return provider.Instance{}, err
	}
	vm, err := p.locate(ctx, c, verbGet, ref)
	switch {
	case err == nil:
		return instanceOf(vm, p.settings.Address), nil
	case errors.Is(err, provider.ErrNotFound):
		return provider.Instance{}, p.launch(ctx, c, ref, err)
	}
	return provider.Instance{}, err
}

// locate finds an instance by name: in the zone that ref hints at, else anywhere.
func (p *Provider) locate(ctx context.Context, c *client, v verb, ref provider.Ref) (*computepb.Instance, error) {
	if !resourceName.MatchString(ref.Name) {
		return nil, &provider.Error{Class: provider.ErrNotFound, Op: string(v), Name: ref.Name, Reason: "InvalidName"}
	}
	if !zoneName.MatchString(ref.Zone) {
		return p.search(ctx, c, v, ref.Name, "")
	}
	vm, gone := p.get(ctx, c, v, ref.Name, ref.Zone)
	if gone == nil || !errors.Is(gone, provider.ErrNotFound) {
		return vm, gone
	}
	vm, err := p.search(ctx, c, v, ref.Name, "")
	if errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrIncomplete) {
		// The zone that it was asked for in says no; that another is silent does not count against it.
		return nil, gone
	}
	return vm, err
}

// get asks one zone for one instance.
func (p *Provider) get(ctx context.Context, c *client, v verb, name, zone string) (*computepb.Instance, error) {
	vm, err := c.instances.Get(ctx, &computepb.GetInstanceRequest{Project: p.settings.Project, Zone: zone, Instance: name}, once())
	if err == nil {
		return vm, nil
	}
	err = p.fail(ctx, verbGet, name, zone, err)
	var e *provider.Error
	if errors.As(err, &e) {
		e.Op = string(v)
	}
	return nil, err
}

func absent(v verb, name, zone string) error {
	return &provider.Error{Class: provider.ErrNotFound, Op: string(v), Name: name, Zone: zone}
}
