package gce

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Create asks for the instance that req describes. Names are unique per zone only, so the other zones
// are looked at first; within the zone the API itself keeps the name single.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (provider.Instance, error) {
	if err := check(req); err != nil {
		return provider.Instance{}, invalid(verbCreate, req.Name, req.Zone, "InvalidRequest", err)
	}
	c, err := p.connect(ctx)
	if err != nil {
		return provider.Instance{}, err
	}
	vm, err := p.search(ctx, c, verbCreate, req.Name, regionOf(req.Zone))
	switch {
	case err == nil:
		return p.adopt(req, vm)
	case !errors.Is(err, provider.ErrNotFound):
		return provider.Instance{}, err
	}
	return p.insert(ctx, c, req, "")
}

// insert puts the request to the API. An answer that is an operation already done is an old one, given
// because the request id was known: then the attempt that it speaks of is over and a new one is made,
// once. after names the operation of the attempt that is over.
func (p *Provider) insert(ctx context.Context, c *client, req provider.CreateRequest, after string) (provider.Instance, error) {
	id := requestID(req.Name, req.Zone, p.now(), after)
	answer, err := c.instances.Insert(ctx, p.settings.insertRequest(req, id))
	if err != nil {
		return p.refused(ctx, c, req, p.fail(ctx, verbCreate, req.Name, req.Zone, err))
	}
	op := answer.Proto()
	if op.GetStatus() != computepb.Operation_DONE {
		return p.accepted(req, op), nil
	}
	failure := p.failure(op, req.Name, req.Zone)
	switch {
	case failure == nil:
		vm, err := p.get(ctx, c, verbCreate, req.Name, req.Zone)
		if err == nil {
			return p.adopt(req, vm)
		}
		if !errors.Is(err, provider.ErrNotFound) {
			return provider.Instance{}, err
		}
	case failure.Reason == provider.ReasonNameConflict:
		return p.refused(ctx, c, req, failure)
	}
	if after == "" {
		return p.insert(ctx, c, req, op.GetName())
	}
	if failure == nil {
		return provider.Instance{}, &provider.Error{Class: provider.ErrTransient, Op: string(verbCreate), Name: req.Name, Zone: req.Zone,
			Err: errors.New("made and gone again within a minute")}
	}
	failure.Op = string(verbCreate)
	return provider.Instance{}, failure
}

// refused looks who has the name when that is what refusal says, and passes any other refusal on.
func (p *Provider) refused(ctx context.Context, c *client, req provider.CreateRequest, refusal error) (provider.Instance, error) {
	var e *provider.Error
	if !errors.As(refusal, &e) || e.Reason != provider.ReasonNameConflict {
		return provider.Instance{}, refusal
	}
	vm, err := p.get(ctx, c, verbCreate, req.Name, req.Zone)
	switch {
	case err == nil:
		return p.adopt(req, vm)
	case !errors.Is(err, provider.ErrNotFound):
		return provider.Instance{}, err
	case strings.Contains(e.Error(), "/disks/"):
		return provider.Instance{}, refusal // a disk of that name, left over or somebody's
	}
	// It went between the two calls.
	return provider.Instance{}, &provider.Error{Class: provider.ErrTransient, Op: e.Op, Name: e.Name, Zone: e.Zone, Err: e.Err}
}

// adopt returns vm if it is the instance that req describes.
func (p *Provider) adopt(req provider.CreateRequest, vm *computepb.Instance) (provider.Instance, error) {
	var differs []string
	have := vm.GetLabels()
	for key, want := range map[string]string{
		labelOwner:       req.Owner,
		labelUID:         req.UID,
		labelIncarnation: strconv.FormatInt(req.Incarnation, 10),
		labelSpecHash:    req.SpecHash,
	} {
		if have[key] != want {
			differs = append(differs, key)
		}
	}
	found := instanceOf(vm, p.settings.Address)
	if len(differs) > 0 {
		slices.Sort(differs)
		return provider.Instance{}, invalid(verbCreate, req.Name, found.Zone, provider.ReasonNameConflict,
			errors.New("the name is taken by an instance that differs in "+strings.Join(differs, ", ")))
	}
	return found, nil
}

// accepted is the instance of an insert that was accepted: nothing is known of it yet but what was
// asked for.
func (p *Provider) accepted(req provider.CreateRequest, op *computepb.Operation) provider.Instance {
	return provider.Instance{
		Name:        req.Name,
		Zone:        req.Zone,
		State:       provider.StateProvisioning,
		Owner:       req.Owner,
		UID:         req.UID,
		Incarnation: req.Incarnation,
		SpecHash:    req.SpecHash,
		CreateTime:  timeOf(op.GetInsertTime()),
		Operation:   operationRef(req.Zone, op.GetName()),
	}
}
