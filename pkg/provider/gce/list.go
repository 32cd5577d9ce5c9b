package gce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// pageSize is the largest that the API takes.
const pageSize = 500

// ListByTag returns all instances whose owner label is tag, with one listing over all zones.
func (p *Provider) ListByTag(ctx context.Context, tag string) ([]provider.Instance, error) {
	if tag == "" || !labelValue.MatchString(tag) {
		return nil, invalid(verbList, tag, "", "InvalidTag", errors.New("the tag is not a label value"))
	}
	c, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	v, err := p.list(ctx, c, fmt.Sprintf("labels.%s=%q", labelOwner, tag))
	if err != nil && len(v.vms) == 0 {
		return nil, err
	}
	out := make([]provider.Instance, 0, len(v.vms))
	for _, key := range slices.Sorted(maps.Keys(v.vms)) {
		out = append(out, instanceOf(v.vms[key], p.settings.Address))
	}
	if ended := ctx.Err(); ended != nil {
		return nil, ended
	}
	if err != nil || len(v.silent) > 0 {
		return out, &provider.IncompleteError{Unreachable: v.unreachable(), Err: err}
	}
	return out, nil
}

// search looks for a name in all zones. ErrNotFound means that it is nowhere. When zones of the region
// did not answer the error is ErrIncomplete instead; an empty region stands for all of them.
func (p *Provider) search(ctx context.Context, c *client, v verb, name, region string) (*computepb.Instance, error) {
	seen, err := p.list(ctx, c, fmt.Sprintf("name=%q", name))
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(seen.vms)) {
		return seen.vms[key], nil
	}
	silent := slices.DeleteFunc(seen.unreachable(), func(scope string) bool {
		return region != "" && zoneName.MatchString(base(scope)) && regionOf(base(scope)) != region
	})
	if len(silent) > 0 {
		return nil, &provider.Error{Class: provider.ErrTransient, Op: string(v), Name: name, Err: &provider.IncompleteError{Unreachable: silent}}
	}
	return nil, absent(v, name, "")
}

// view is what a listing saw.
type view struct {
	vms    map[string]*computepb.Instance // by zone and name: a zone can come on several pages
	silent map[string]bool                // scopes that did not answer
}

func (v *view) unreachable() []string { return slices.Sorted(maps.Keys(v.silent)) }

// list reads all pages of one aggregated listing. On an error it returns what it saw before.
func (p *Provider) list(ctx context.Context, c *client, filter string) (*view, error) {
	v := &view{vms: map[string]*computepb.Instance{}, silent: map[string]bool{}}
	instances, _, err := c.forList(ctx)
	if err != nil {
		return v, p.fail(ctx, verbList, p.settings.Project, "", err)
	}
	it := instances.AggregatedList(ctx, &computepb.AggregatedListInstancesRequest{
		Project: p.settings.Project,
		Filter:  proto.String(filter),
	}, retried())
	for token := ""; ; {
		// Page by page, not with Next: a page without instances may still say that a zone was
		// unreachable, and Next would step over it.
		scopes, next, err := it.InternalFetch(pageSize, token)
		if err == nil && next == token && next != "" {
			err = errors.New("the same page again")
		}
		if err != nil {
			return v, p.fail(ctx, verbList, p.settings.Project, "", err)
		}
		v.add(scopes, it.Response.(*computepb.InstanceAggregatedList))
		if next == "" {
			return v, nil
		}
		token = next
	}
}

func (v *view) add(scopes []compute.InstancesScopedListPair, page *computepb.InstanceAggregatedList) {
	for _, scope := range page.GetUnreachables() {
		v.silent[base(scope)] = true
	}
	for _, scope := range scopes {
		for _, vm := range scope.Value.GetInstances() {
			v.vms[scope.Key+"/"+vm.GetName()] = vm
		}
		if doubtful(scope.Value.GetWarning().GetCode()) {
			v.silent[base(scope.Key)] = true
		}
	}
	if doubtful(page.GetWarning().GetCode()) && len(v.silent) == 0 {
		v.silent[strings.ToLower(page.GetWarning().GetCode())] = true
	}
}

// doubtful reports whether a warning means that something may be missing. All do, unless they are
// known to be harmless: to wait for a better view costs nothing.
func doubtful(warning string) bool {
	return warning != "" && warning != "NO_RESULTS_ON_PAGE"
}
