// Package reconcile makes the cloud what the Proxy documents ask for.
//
// A run takes the lock, reads the documents, starts their probes, lists the instances and then sees
// to one Proxy after the other: Plan, which is pure, says what is to be looked up, recorded and done;
// the run does it, shows Plan what came of it, and records that. What is to be done is recorded before
// it is done, under the document's version: a run that dies in between, or that overlaps with
// another, is taken up by the next one under the same name. At the end the run removes orphans and
// expired slots and publishes the catalog that leases are granted from.
//
// view.go says what Plan knows and decides; plan.go and the other plan files are Plan, a group of rows
// each, with sight.go, adopt.go, launch.go, drain.go, handover.go and deletion.go for what the rows
// have in common. run.go is the run in its order: read.go, prepare.go, visit.go and act.go, entries.go
// with catalog.go, capacity.go and publish.go, and housekeeping.go. limits.go keeps what Proxies share.
package reconcile

import (
	"context"
	"crypto/rand"
	"time"

	mathrand "math/rand/v2"

	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/secret"
	"crawl.example.com/proxyfleet/pkg/store"
)

// Store is what a run needs of a store.
type Store interface {
	store.Proxies
	store.Slots
	store.SlotViews
	store.Catalog
	store.Runs
}

// Account is one configured provider.
type Account struct {
	Provider     provider.Provider
	MaxInstances int // that may exist at once, replacements included; 0 means any number
}

// Target is one instance that could be probed in a run.
type Target struct {
	Name        string        // of the Proxy
	Incarnation int64         // 0 for External
	Shard       int           // of the catalog; negative while the Proxy is in none
	Next        bool          // it is to take over from the instance that is leased
	Unproven    bool          // nothing is known of its health yet
	Interval    time.Duration // how often the Proxy is to be probed
}

// Prober has instances probed by somebody else. Start chooses from all targets those that are due
// at tick, sends them off and returns at once how many they are; wait collects whether they were
// taken.
type Prober interface {
	Start(ctx context.Context, tick time.Time, targets []Target) (due int, wait func(context.Context) error)
}

// Config is what a Reconciler works with.
type Config struct {
	Store     Store
	Providers map[string]Account // by the name that documents use
	Secrets   secret.Resolver    // for cloud-init; may be nil when no document refers to one
	Prober    Prober             // may be nil: nothing is probed
	Metrics   *Metrics           // may be nil

	Owner    string // owner tag of this fleet's instances, see fleet.Owner
	Database string // that the documents are in; part of their identity

	Timeout     time.Duration // of a run; default 150 s
	Concurrency int           // Proxies that are seen to at a time; default 16

	Now    func() time.Time // default time.Now
	Random func() float64   // in [0,1), for jitter; default math/rand
	Holder func() string    // names a run as the holder of the lock, each time anew; default random
}

const (
	defaultTimeout     = 150 * time.Second
	defaultConcurrency = 16
	// lockSlack is how long the lock outlives the longest run: no call that was made in time is
	// still under way when somebody else takes the lock, and no lease function still grants by the
	// catalog from before.
	lockSlack = 30 * time.Second
	// callTimeout bounds one call of a provider. Create and Delete do not wait for the cloud.
	callTimeout = 20 * time.Second
	// listTimeout bounds one listing with all its pages.
	listTimeout = 60 * time.Second
	// storeTimeout bounds one call of the store, with the retries of its client.
	storeTimeout = 10 * time.Second
)

// Reconciler runs, one run at a time over all processes. It keeps nothing between runs.
type Reconciler struct {
	Config
	onVisit func(ctx context.Context, name string) // for tests: called before a Proxy is seen to
}

// New returns a Reconciler with the defaults filled in.
func New(c Config) *Reconciler {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Concurrency <= 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = mathrand.Float64
	}
	if c.Holder == nil {
		c.Holder = rand.Text
	}
	return &Reconciler{Config: c, onVisit: func(context.Context, string) {}}
}

// margin is the part of a run's time in which no Proxy is seen to any more: it belongs to the
// catalog, the results of the probes and the lock.
func (r *Reconciler) margin() time.Duration { return r.Timeout / 6 }

// now is the time as all stores keep it.
func (r *Reconciler) now() time.Time { return canonical(r.Now()) }

func canonical(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
