package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/store"
)

// run is one run that holds the lock.
type run struct {
	*Reconciler
	lock store.Run
	tick time.Time
	soft time.Time // until when Proxies are seen to
	hard time.Time // until when anything is done

	proxies  []fleet.Proxy // by name
	shards   []store.Shard
	catalog  map[string]place
	listings map[string]listing
	limits   *limits
	uids     map[string]string // by Proxy
	exits    map[string][]string

	tally *tally

	mu      sync.Mutex
	after   map[string]fleet.Proxy // as the run leaves them; what is not in it was removed
	removed map[string]bool        // by this run, slots included
	visited map[string]bool
	judged  map[string]judgedDocument
}

// Run brings the cloud in line with the documents as far as its time allows, and says what it did.
// tick is what probes are counted by. A run that somebody else holds the lock of is no error:
// Summary.Skipped says so. The error is that the lock, the documents or the instances of a provider
// could not be read; whatever could be done has been done nevertheless. A Proxy that fails fails alone: see Summary.Errors.
func (r *Reconciler) Run(ctx context.Context, tick time.Time) (s Summary, err error) {
	start := r.now()
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	one := &run{
		Reconciler: r, tick: canonical(tick), hard: start.Add(r.Timeout), soft: start.Add(r.Timeout - r.margin()),
		tally: newTally(start), after: map[string]fleet.Proxy{}, removed: map[string]bool{}, visited: map[string]bool{}, judged: map[string]judgedDocument{},
	}
	held, err := one.acquire(ctx, start)
	switch {
	case err != nil:
		s = one.tally.end(r.now())
	case held:
		s = Summary{Skipped: skippedLocked}
	default:
		s, err = one.underLock(ctx)
	}
	r.Metrics.ran(s, err, r.now().Sub(start))
	return s, err
}

// underLock runs and frees the lock, also when it panics.
func (r *run) underLock(ctx context.Context) (s Summary, err error) {
	next := r.lock
	next.EndTime = r.now()
	defer func() { err = errors.Join(err, r.release(ctx, next)) }()
	err = r.all(ctx)
	s = r.tally.end(r.now())
	next.EndTime = r.now()
	if r.limits != nil { // it came so far that it knows better than the last run
		next.Cursor, next.Orphans, next.Cooldowns = s.cursor, s.orphans, r.limits.stillCooling(next.EndTime)
	}
	if data, jsonErr := json.Marshal(s); jsonErr == nil {
		next.Summary = data
	}
	return s, err
}

// all is a run in its order: what others wait for comes first, what is slow later.
func (r *run) all(ctx context.Context) error {
	if err := r.read(ctx); err != nil {
		return err
	}
	collect := r.startProbes(ctx)
	err := r.list(ctx)
	r.prepare()
	r.visitAll(ctx)
	r.writeCatalog(ctx)
	r.sweepOrphans(ctx)
	r.deleteExpired(ctx)
	r.tally.published(collect(ctx))
	r.observe()
	return err
}

// acquire takes the lock; held reports that somebody else has it.
func (r *run) acquire(ctx context.Context, now time.Time) (held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	holder := r.Holder()
	r.lock, err = r.Store.LockRun(ctx, holder, now, r.Timeout+lockSlack)
	switch {
	case err == nil:
		return false, nil
	case !errors.Is(err, store.ErrLocked):
		return false, fmt.Errorf("lock run: %w", err)
	}
	// The answer to our own first try may have been lost.
	return r.lock.Holder != holder, nil
}

// release frees the lock. It has its own time: a lock that is kept stops the next runs.
func (r *run) release(ctx context.Context, next store.Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := r.Store.UnlockRun(ctx, next)
	if err == nil || errors.Is(err, store.ErrConflict) { // somebody has taken it after its end: it is theirs
		return nil
	}
	return fmt.Errorf("unlock run: %w", err)
}

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

// prepare works out what Proxies share.
func (r *run) prepare() {
	r.limits = newLimits(r.lock.Cooldowns)
	proxies, unhealthy := map[string]int{}, map[string]int{}
	for _, p := range r.proxies {
		if p.Spec.Mode == fleet.Managed && p.DeleteTime.IsZero() {
			name := providerOf(p)
			proxies[name]++
			if isUnhealthy(p) {
				unhealthy[name]++
			}
		}
	}
	for name, account := range r.Providers {
		b := r.limits.of(name)
		b.configured, b.listing, b.max = true, r.listings[name], account.MaxInstances
		b.atOnce, b.meltDown = replacements(proxies[name]), meltDown(unhealthy[name], proxies[name])
		r.tally.meltDown(name, b.meltDown)
	}
	for _, p := range r.proxies {
		name := providerOf(p)
		r.limits.note(p.Name, name, newPlanner(r.view(p, nil, nil)).holds(), p.Status.Replacing != "")
	}
	for _, o := range r.orphans() {
		r.limits.of(o.provider).held++
	}
}

// providerOf returns the provider that p's instances are at, whatever its spec has come to say.
func providerOf(p fleet.Proxy) string {
	if a := p.Status.Accepted; a != nil {
		return a.Provider
	}
	return p.Spec.Provider
}

// view is what the run knows of p.
func (r *run) view(p fleet.Proxy, facts map[string]Fact, slots *[]store.Slot) View {
	v := View{
		Now: r.now(), Proxy: p, Faults: r.faults(p), UID: r.uids[p.Name], Owner: r.Owner, Facts: facts, Slots: slots,
		Listed: r.listings[providerOf(p)].byUID[r.uids[p.Name]], SharesExit: r.exits[p.Name], Jitter: r.Random(),
	}
	if at, ok := r.catalog[p.Name]; ok {
		v.Entry = &at.entry
	}
	return v
}

// judgedDocument remembers what was found wrong with one version of a document.
type judgedDocument struct {
	version time.Time
	faults  fleet.Faults
}

// faults says what is wrong with a document. Where its status is another document's, what that one
// was accepted as does not matter.
func (r *run) faults(p fleet.Proxy) fleet.Faults {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j, ok := r.judged[p.Name]; ok && j.version.Equal(p.UpdateTime) {
		return j.faults
	}
	before := p
	if uid := p.Status.UID; uid != "" && uid != r.uids[p.Name] {
		before.Status = fleet.Status{}
	}
	faults := fleet.ValidateUpdate(before, p)
	r.judged[p.Name] = judgedDocument{p.UpdateTime, faults}
	return faults
}
