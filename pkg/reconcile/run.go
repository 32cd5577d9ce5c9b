package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
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
