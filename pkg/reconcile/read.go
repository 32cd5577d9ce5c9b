package reconcile

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// read reads the documents and the catalog.
func (r *run) read(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		if r.proxies, err = r.Store.ListProxies(ctx); err != nil {
			return fmt.Errorf("list proxies: %w", err)
		}
		return nil
	})
	g.Go(func() (err error) {
		r.shards, err = r.readCatalog(ctx)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	r.catalog = places(r.shards)
	r.uids = identities(r.proxies, r.Database)
	r.exits = fleet.SharedExits(r.proxies)
	for _, p := range r.proxies {
		r.after[p.Name] = p
	}
	r.tally.read(len(r.proxies))
	return nil
}

// listing is what one provider showed.
type listing struct {
	instances []provider.Instance
	byUID     map[string][]provider.Instance
	blind     bool            // it showed nothing
	partial   bool            // it may not have shown all
	brokeOff  bool            // it ended early
	silent    map[string]bool // zones that did not answer
}

// list lists every provider's instances. A provider that does not answer holds up no other;
// nothing is done at it in this run.
func (r *run) list(ctx context.Context) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	r.listings = map[string]listing{}
	for name, account := range r.Providers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			instances, err := account.Provider.ListByTag(ctx, r.Owner)
			mu.Lock()
			defer mu.Unlock()
			r.listings[name] = newListing(instances, r.Owner, err)
			if err != nil {
				r.tally.incomplete(name)
			}
			if r.listings[name].blind {
				errs = append(errs, fmt.Errorf("list instances of %s: %w", name, err))
			}
		})
	}
	wg.Wait()
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func newListing(instances []provider.Instance, owner string, err error) listing {
	l := listing{byUID: map[string][]provider.Instance{}, silent: map[string]bool{}}
	if err != nil {
		l.partial, l.brokeOff, l.blind = true, true, len(instances) == 0
	}
	var partial *provider.IncompleteError
	if errors.As(err, &partial) && partial.Err == nil {
		l.brokeOff, l.blind = false, false
		for _, zone := range partial.Unreachable {
			l.silent[path.Base(zone)] = true
		}
	}
	for _, i := range instances {
		if i.Owner == owner {
			l.instances = append(l.instances, i)
			l.byUID[i.UID] = append(l.byUID[i.UID], i)
		}
	}
	return l
}

// identities returns the uid of every document, by name: what its status says, else what it is derived
// from. Where two documents claim one uid, since somebody copied one with its status, it is that of
// the one which it is derived from, or else of the older.
func identities(proxies []fleet.Proxy, database string) map[string]string {
	uids := map[string]string{}
	claims := map[string]int{} // index of the document that has the uid
	derived := func(p fleet.Proxy) string { return fleet.UID(database, "proxies/"+p.Name, p.CreateTime) }
	for i, p := range proxies {
		uid := p.Status.UID
		if uid == "" {
			uids[p.Name] = derived(p)
			continue
		}
		uids[p.Name] = uid
		j, claimed := claims[uid]
		if !claimed {
			claims[uid] = i
			continue
		}
		loser := p
		if derived(p) == uid || p.CreateTime.Before(proxies[j].CreateTime) && derived(proxies[j]) != uid {
			loser, claims[uid] = proxies[j], i
		}
		uids[loser.Name] = derived(loser)
	}
	return uids
}
