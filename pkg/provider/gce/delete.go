package gce

import (
	"context"
	"errors"

	"cloud.google.com/go/compute/apiv1/computepb"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Delete asks for the instance to go, wherever it is. One that is going already is not asked again:
// each call would count against the project's rate. An instance without an owner label is nobody's of
// ours and is refused.
func (p *Provider) Delete(ctx context.Context, ref provider.Ref) error {
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	vm, err := p.locate(ctx, c, verbDelete, ref)
	if errors.Is(err, provider.ErrNotFound) {
		return p.settled(ctx, c, ref)
	}
	if err != nil {
		return err
	}
	zone := base(vm.GetZone())
	switch {
	case stateOf(vm.GetStatus()) == provider.StateStopping:
		return nil
	case vm.GetLabels()[labelOwner] == "":
		return invalid(verbDelete, ref.Name, zone, provider.ReasonNameConflict, errors.New("the instance carries no owner label"))
	}
	_, err = c.instances.Delete(ctx, &computepb.DeleteInstanceRequest{Project: p.settings.Project, Zone: zone, Instance: ref.Name})
	if err == nil {
		return nil
	}
	if err = p.fail(ctx, verbDelete, ref.Name, zone, err); errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// settled is success unless an insert of the absent instance is still under way: then the instance may
// yet appear and would be left over.
func (p *Provider) settled(ctx context.Context, c *client, ref provider.Ref) error {
	if _, _, known := parseOperation(ref.Operation); !known {
		return nil
	}
	op, zone, err := p.operation(ctx, c, ref)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case op.GetStatus() != computepb.Operation_DONE:
		return underWay(verbDelete, ref.Name, zone)
	}
	return nil
}
