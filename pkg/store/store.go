// Package store keeps documents, slots, the catalog and the run lock: one interface, in memory and on Firestore.
package store

import (
	"context"
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// The errors of a store. Anything else is an outage: nothing may be concluded from it.
var (
	// ErrNotFound: no such document.
	ErrNotFound = errors.New("not found")
	// ErrExists: the document that was to be created exists. The store's client repeats lost
	// writes by itself, so it may be the caller's own.
	ErrExists = errors.New("exists already")
	// ErrConflict: the document is not the version that the write was conditional on, or is gone.
	// It, too, may be the caller's own write, repeated.
	ErrConflict = errors.New("changed meanwhile")
	// ErrLocked: somebody else holds the run lock.
	ErrLocked = errors.New("locked")
)

// Store is everything the plane keeps. All times are UTC with microseconds. All methods are safe for
// concurrent use, need a context with a deadline, and return ctx's error when it ends.
type Store interface {
	Proxies
	Operators
	Slots
	SlotViews
	Requests
	Catalog
	Runs
}

// StatusFields says which part of a status a write carries.
type StatusFields int

// The parts of a status, by owner.
const (
	ReconcileFields StatusFields = iota + 1 // all but Health, NextHealth and the condition Healthy
	HealthFields                            // Health, NextHealth and the conditions Healthy and Ready
	AllFields                               // both: for the moment when reconcile switches instances
)

// Proxies are the documents as the plane uses them.
type Proxies interface {
	// ListProxies returns all documents, by name, in one query. A document that does not decode is
	// returned with Broken saying why, and with all that did decode.
	ListProxies(ctx context.Context) ([]fleet.Proxy, error)
	// GetProxy returns one document, or ErrNotFound.
	GetProxy(ctx context.Context, name string) (fleet.Proxy, error)
	// WriteStatus writes the named fields of p.Status if the document still has version
	// p.UpdateTime, and returns p with its new version. Fields of other owners, labels and spec are
	// never touched. ErrConflict when it changed or is gone; its own repeated write counts as success.
	WriteStatus(ctx context.Context, p fleet.Proxy, fields StatusFields) (fleet.Proxy, error)
	// RemoveProxy removes the document if it still has version p.UpdateTime: ErrConflict otherwise;
	// absent is success.
	RemoveProxy(ctx context.Context, p fleet.Proxy) error
}

// Edit is what people change of a document. Nil fields stay as they are.
type Edit struct {
	Labels     map[string]string // replaces all labels; empty but not nil removes them
	Spec       map[string]any    // replaces the spec, in the manifest's form
	DeleteTime time.Time
	RotateTime time.Time
}

// Operators are the documents as people use them.
type Operators interface {
	// CreateProxy makes a document of Labels and Spec: ErrExists when there is one.
	CreateProxy(ctx context.Context, name string, e Edit) (fleet.Proxy, error)
	// EditProxy changes a document if it still has version ifVersion (zero: whatever it is):
	// ErrNotFound, ErrConflict.
	EditProxy(ctx context.Context, name string, e Edit, ifVersion time.Time) (fleet.Proxy, error)
}

// Slot is one of a Proxy's places, held by a lease. An absent document is a free slot.
type Slot struct {
	Proxy       string // document id is "{Proxy}.{N}"
	N           int    // from 0
	LeaseID     string // see LEASES: "{proxy}.{n}.{random}"
	Incarnation int64  // of the instance that the lease was granted on; 0 for External
	Holder      string // who asked; may be empty
	RequestID   string // may be empty
	Target      string // host that the crawler means to fetch; may be empty
	Rebound     bool   // the sticky choice could not be given
	AcquireTime time.Time
	ExpireTime  time.Time

	// Fence is the commit time, in microseconds since 1970, of the write that took the slot: it grows
	// with every holder. Stores fill it in when they read or take a slot; a write of a taken slot
	// keeps it.
	Fence int64
	// Version is what conditional writes name.
	Version time.Time
}

// Request remembers what a request id led to.
type Request struct {
	Key         string // hash of holder and request id; the document id
	PayloadHash string
	LeaseID     string
	ExpireTime  time.Time // when the store may forget it
}

// Slots are taken and freed one at a time; each method but GetSlot is one atomic commit.
type Slots interface {
	// CreateSlot takes a free slot and, when req is not nil, records the request in the same commit.
	// It returns the slot with Fence and Version. ErrExists when slot or request exists.
	CreateSlot(ctx context.Context, s Slot, req *Request) (Slot, error)
	// ReplaceSlot overwrites the slot if it still has version s.Version: a renewal keeps s.Fence; a
	// takeover comes with Fence 0 and gets a new one. req as in CreateSlot. ErrConflict when the slot
	// changed or is gone; ErrExists when the request exists.
	ReplaceSlot(ctx context.Context, s Slot, req *Request) (Slot, error)
	// DeleteSlot frees the slot if it still has version s.Version; ErrConflict when it changed or is
	// gone.
	DeleteSlot(ctx context.Context, s Slot) error
	// GetSlot returns one slot, or ErrNotFound.
	GetSlot(ctx context.Context, proxy string, n int) (Slot, error)
}

// SlotViews read many slots. Expired slots are included wherever their documents still exist.
type SlotViews interface {
	// SlotsFrom returns up to limit slots in document-id order whose Proxy is at or behind from and,
	// when to is not empty, before to. One query; document ids sort as strings.
	SlotsFrom(ctx context.Context, from, to string, limit int) ([]Slot, error)
	// ProxySlots returns all slots of one Proxy.
	ProxySlots(ctx context.Context, proxy string) ([]Slot, error)
	// CountSlots counts the slots that expire after liveAt.
	CountSlots(ctx context.Context, liveAt time.Time) (int64, error)
	// ExpiredSlots returns up to limit slots that expired before the given time.
	ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]Slot, error)
}

// Requests answers for request ids, and remembers bans.
type Requests interface {
	// GetRequest returns what the request id led to, or ErrNotFound.
	GetRequest(ctx context.Context, key string) (Request, error)
	// RecordBan notes that lease leaseID was banned by target at the given time, forgets notes older
	// than window, and returns how many distinct leases are noted now for this Proxy and target.
	RecordBan(ctx context.Context, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error)
}

// MaxShardEntries is how many entries one document of the catalog holds at most.
const MaxShardEntries = 1000

// Shard is one document of the catalog.
type Shard struct {
	ID      int // from 0
	Entries map[string]fleet.Entry
	Version time.Time // zero: not stored yet
}

// Catalog is the compact view of all Proxies that leases are granted from.
type Catalog interface {
	// ReadCatalog returns all shards, by id. An empty catalog is no error.
	ReadCatalog(ctx context.Context) ([]Shard, error)
	// WriteShard puts and drops entries of one shard, leaving the others, if it still has version
	// s.Version (zero: it must not exist): ErrConflict otherwise. s.Entries is not looked at.
	// It returns the new version.
	WriteShard(ctx context.Context, s Shard, put map[string]fleet.Entry, drop []string) (time.Time, error)
	// SetVerdict sets the verdict of one entry and nothing else. ErrNotFound when there is no such shard.
	SetVerdict(ctx context.Context, shard int, name string, v fleet.Verdict) error
	// SetQuarantine keeps the Proxy from leases for target until the given time and nothing else.
	// ErrNotFound when there is no such shard.
	SetQuarantine(ctx context.Context, shard int, name, target string, until time.Time) error
}

// Run is the one document about runs: the lock, and what one run leaves to the next.
type Run struct {
	Fence      int64     // grows with every holder
	Holder     string    // empty: free
	ExpireTime time.Time // when a lock that nobody freed may be taken

	Cursor    string               // name after which the next run starts; empty: from the beginning
	Orphans   map[string]time.Time // instances without a document, by "{provider}/{name}", and since when
	Cooldowns map[string]time.Time // zones without stock, by "{provider}/{zone}", and until when
	Summary   []byte               // JSON of the last finished run's summary, for people
	EndTime   time.Time            // when the last run finished

	Version time.Time
}

// Runs is the run lock.
type Runs interface {
	// LockRun takes the lock for ttl and returns the document with a Fence of its own. ErrLocked,
	// with the document, when somebody else holds it and now is before its ExpireTime.
	LockRun(ctx context.Context, holder string, now time.Time, ttl time.Duration) (Run, error)
	// UnlockRun stores r with an empty Holder if r.Fence is still the lock's: ErrConflict otherwise.
	UnlockRun(ctx context.Context, r Run) error
	// GetRun returns the document, the zero Run when there has been none.
	GetRun(ctx context.Context) (Run, error)
}
