package reconcile

import (
	"context"
	"errors"
	"fmt"

	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// act takes one action and notes what came of it. done: the Proxy is no more.
func (v *visit) act(ctx context.Context, a Action) (done bool, err error) {
	switch a.Verb {
	case Create:
		v.create(ctx, a.Create)
	case Delete:
		v.delete(ctx, a.Ref)
	case Remove:
		return v.remove(ctx)
	}
	return false, nil
}

func (v *visit) create(ctx context.Context, req provider.CreateRequest) {
	v.tally.did(didCreate)
	f := v.facts[req.Name]
	made, err := v.ask(ctx, req)
	if err != nil {
		f.CreateErr = err
		v.tally.failed(v.p.Name, callClass(err), err.Error())
	} else {
		f.Seen, f.Absent, f.Failure, f.GetErr = &made, false, nil, nil
	}
	v.facts[req.Name] = f
}

func (v *visit) ask(ctx context.Context, req provider.CreateRequest) (provider.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	if req.UserData, err = v.userData(ctx); err != nil {
		return provider.Instance{}, err
	}
	return v.account().Create(ctx, req)
}

// userData returns the cloud-init document. A secret that cannot be had is no reason to give a spec
// up for good: it may be written after the spec.
func (v *visit) userData(ctx context.Context) (string, error) {
	c := v.p.Spec.CloudInit
	switch {
	case c == nil:
		return "", nil
	case c.SecretRef == nil:
		return c.Inline, nil
	}
	err := errors.New("no secrets are configured")
	if v.Secrets != nil {
		var data string
		if data, err = v.Secrets.Resolve(ctx, c.SecretRef.Name, c.SecretRef.Key); err == nil {
			return data, nil
		}
	}
	return "", &provider.Error{Class: provider.ErrTransient, Op: "resolve", Name: "spec.cloudInit.secretRef", Reason: "SecretUnavailable", Err: err}
}

func (v *visit) delete(ctx context.Context, ref provider.Ref) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v.tally.did(didDelete)
	f := v.facts[ref.Name]
	if f.DeleteErr = v.account().Delete(ctx, ref); f.DeleteErr == nil {
		f.Deleted = true
	} else {
		v.tally.failed(v.p.Name, callClass(f.DeleteErr), f.DeleteErr.Error())
	}
	v.facts[ref.Name] = f
}

// remove frees the slots of a Proxy without instances and removes its document. A slot that changes
// while it is freed leaves the rest to the next run.
func (v *visit) remove(ctx context.Context) (done bool, err error) {
	if err := v.readSlots(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, s := range *v.slots {
		if err := v.Store.DeleteSlot(ctx, s); err != nil {
			return true, fmt.Errorf("free slot %s: %w", store.SlotID(s.Proxy, s.N), err)
		}
	}
	if err := v.Store.RemoveProxy(ctx, v.p); err != nil {
		return true, fmt.Errorf("remove document: %w", err)
	}
	v.tally.did(didRemove)
	v.drop(true)
	v.limits.mu.Lock()
	defer v.limits.mu.Unlock()
	v.limits.note(v.p.Name, providerOf(v.p), 0, false)
	return true, nil
}
