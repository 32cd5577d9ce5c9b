package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// maxRounds is how often Plan is asked about one Proxy in one run: enough to look up everything, to
// try the zones of a spec and to begin anew a few times after a conflict. The next run goes on.
const maxRounds = 16

// visitAll sees to the Proxies, from the one after the last run's cursor, until the time is up.
func (r *run) visitAll(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, deadlineOf(ctx, r.margin()/2))
	defer cancel()
	var wg sync.WaitGroup
	places := make(chan struct{}, r.Concurrency)
	last := ""
	for _, p := range after(r.proxies, r.lock.Cursor) {
		places <- struct{}{}
		if !r.inTime(ctx, r.soft) {
			r.tally.outOfTime(last)
			break
		}
		last = p.Name
		wg.Go(func() {
			defer func() { <-places }()
			r.visitSafely(ctx, p)
		})
	}
	wg.Wait()
}

// deadlineOf is the context's deadline, so much earlier.
func deadlineOf(ctx context.Context, earlier time.Duration) time.Time {
	d, _ := ctx.Deadline()
	return d.Add(-earlier)
}

// after returns the Proxies in order, beginning behind the cursor.
func after(proxies []fleet.Proxy, cursor string) []fleet.Proxy {
	for i, p := range proxies {
		if p.Name > cursor {
			return append(proxies[i:len(proxies):len(proxies)], proxies[:i]...)
		}
	}
	return proxies
}

// inTime reports whether there is time left before a limit. The context has the same limit, but a
// process that was frozen may see its own clock first.
func (r *run) inTime(ctx context.Context, limit time.Time) bool {
	return ctx.Err() == nil && r.now().Before(limit)
}

// visitSafely keeps the failure of one Proxy from the others.
func (r *run) visitSafely(ctx context.Context, p fleet.Proxy) {
	defer func() {
		if cause := recover(); cause != nil {
			r.tally.failed(p.Name, errorPanic, fmt.Sprintf("%v\n%s", cause, clip(string(debug.Stack()), 2000)))
		}
	}()
	r.onVisit(ctx, p.Name)
	v := visit{run: r, p: p, facts: map[string]Fact{}}
	if err := v.rounds(ctx); err != nil {
		r.tally.failed(p.Name, storeClass(err), err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.visited[p.Name] = true
}

// visit is what a run has found out about one Proxy.
type visit struct {
	*run
	p     fleet.Proxy
	facts map[string]Fact
	slots *[]store.Slot
}

// rounds asks Plan until there is nothing left to do in this run.
func (v *visit) rounds(ctx context.Context) error {
	for range maxRounds {
		if !v.inTime(ctx, v.soft) {
			return nil
		}
		view := v.view(v.p, v.facts, v.slots)
		d := v.limits.decide(view, providerOf(v.p))
		if !d.Ask.Empty() {
			if err := v.lookUp(ctx, d.Ask); err != nil {
				return err
			}
			continue
		}
		gone, again, err := v.record(ctx, view, d)
		if err != nil || gone {
			return err
		}
		if again {
			continue
		}
		v.tally.decided(d)
		if len(d.Actions) == 0 {
			return nil
		}
		for _, a := range d.Actions {
			if !v.inTime(ctx, v.soft) {
				return nil
			}
			if done, err := v.act(ctx, a); err != nil || done {
				return err
			}
		}
	}
	return nil
}

// record writes the status if it changed. again: the document is another one by now, so Plan is to
// look at that.
func (v *visit) record(ctx context.Context, view View, d Decision) (gone, again bool, err error) {
	if d.Changed(view) {
		next := v.p
		next.Status = d.Status
		written, err := v.write(ctx, next, d.Fields)
		if errors.Is(err, store.ErrConflict) {
			gone, err := v.readAgain(ctx)
			return gone, true, err
		}
		if err != nil {
			return false, false, err
		}
		v.keep(written)
	}
	for name, f := range v.facts { // what went wrong is in the status now
		f.CreateErr, f.DeleteErr, f.Failure = nil, nil, nil
		v.facts[name] = f
	}
	return false, false, nil
}

func (v *visit) write(ctx context.Context, p fleet.Proxy, fields store.StatusFields) (fleet.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	written, err := v.Store.WriteStatus(ctx, p, fields)
	if err != nil {
		return p, fmt.Errorf("write status: %w", err)
	}
	v.tally.did(didWrite)
	return written, nil
}

// readAgain reads a document that changed meanwhile. gone: somebody removed it.
func (v *visit) readAgain(ctx context.Context) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p, err := v.Store.GetProxy(ctx, v.p.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		v.drop(false)
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read again: %w", err)
	case !p.CreateTime.Equal(v.p.CreateTime):
		v.drop(false) // removed and made anew: the next run sees to the new one
		return true, nil
	}
	v.keep(p)
	return false, nil
}

func (v *visit) keep(p fleet.Proxy) {
	v.p = p
	v.mu.Lock()
	defer v.mu.Unlock()
	v.after[p.Name] = p
}

// drop notes that the document is gone; byUs: and so are its slots.
func (v *visit) drop(byUs bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.after, v.p.Name)
	v.removed[v.p.Name] = byUs
}

// lookUp answers what Plan asks.
func (v *visit) lookUp(ctx context.Context, ask Ask) error {
	for _, ref := range ask.Get {
		f := v.facts[ref.Name]
		f.Seen, f.Absent, f.Failure, f.GetErr = nil, false, nil, nil
		found, err := v.get(ctx, ref)
		switch {
		case err == nil:
			f.Seen = &found
		case provider.ClassOf(err) == provider.ErrNotFound:
			f.Absent, f.Failure = true, provider.LaunchFailure(err)
		default:
			f.GetErr = err
			v.tally.failed(v.p.Name, callClass(err), err.Error())
		}
		v.facts[ref.Name] = f
	}
	if ask.Slots {
		return v.readSlots(ctx)
	}
	return nil
}

func (v *visit) get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v.tally.did(didGet)
	return v.account().Get(ctx, ref)
}

func (v *visit) account() provider.Provider { return v.Providers[providerOf(v.p)].Provider }

func (v *visit) readSlots(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	slots, err := v.Store.ProxySlots(ctx, v.p.Name)
	if err != nil {
		return fmt.Errorf("read slots: %w", err)
	}
	v.slots = &slots
	return nil
}
