package gce

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/proto"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// launch says what became of an instance that is absent, from the operation that should have made it:
// still under way, failed with a reason, or not known. gone is the ErrNotFound to return then.
func (p *Provider) launch(ctx context.Context, c *client, ref provider.Ref, gone error) error {
	op, zone, err := p.operation(ctx, c, ref)
	switch {
	case errors.Is(err, provider.ErrNotFound) || err == nil && op == nil:
		return gone // the API forgets old operations
	case err != nil:
		return err
	case op.GetStatus() != computepb.Operation_DONE:
		return underWay(verbGet, ref.Name, zone)
	}
	failure := p.failure(op, ref.Name, zone)
	if failure == nil {
		return gone // made, and gone since
	}
	return &provider.Error{Class: provider.ErrNotFound, Op: string(verbGet), Name: ref.Name, Zone: zone, Err: failure}
}

// underWay is the answer while the API has accepted an insert and shows no instance yet. It is neither
// absent nor anybody's: whose it is stands on labels that cannot be seen.
func underWay(v verb, name, zone string) error {
	return &provider.Error{Class: provider.ErrTransient, Op: string(v), Name: name, Zone: zone, Reason: "CreateUnderWay",
		Err: errors.New("its creation is still under way")}
}

// operation returns the operation that ref names, or else the last insert of that name in ref's zone;
// nil when neither tells.
func (p *Provider) operation(ctx context.Context, c *client, ref provider.Ref) (*computepb.Operation, string, error) {
	zone, name, ok := parseOperation(ref.Operation)
	if !ok {
		if !zoneName.MatchString(ref.Zone) || !resourceName.MatchString(ref.Name) {
			return nil, "", nil
		}
		op, err := p.lastInsert(ctx, c, ref.Name, ref.Zone)
		return op, ref.Zone, err
	}
	op, err := c.operations.Get(ctx, &computepb.GetZoneOperationRequest{Project: p.settings.Project, Zone: zone, Operation: name}, once())
	if err != nil {
		return nil, zone, p.fail(ctx, verbGet, name, zone, err)
	}
	return op, zone, nil
}

// lastInsert finds the newest insert of an instance by its target, for when the answer that named the
// operation was lost.
func (p *Provider) lastInsert(ctx context.Context, c *client, name, zone string) (*computepb.Operation, error) {
	_, operations, err := c.forList(ctx)
	if err != nil {
		return nil, p.fail(ctx, verbList, name, zone, err)
	}
	target := fmt.Sprintf("https://www.googleapis.com/compute/v1/projects/%s/zones/%s/instances/%s", p.settings.Project, zone, name)
	it := operations.List(ctx, &computepb.ListZoneOperationsRequest{
		Project: p.settings.Project,
		Zone:    zone,
		Filter:  proto.String(fmt.Sprintf(`(operationType="insert") AND (targetLink=%q)`, target)),
	}, retried())
	var last *computepb.Operation
	for {
		op, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return last, nil
		}
		if err != nil {
			return nil, p.fail(ctx, verbList, name, zone, err)
		}
		if last == nil || timeOf(op.GetInsertTime()).After(timeOf(last.GetInsertTime())) {
			last = op
		}
	}
}
