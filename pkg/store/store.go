// Package store keeps documents, slots, the catalog and the run lock: one interface, in memory and on Firestore.
package store

import (
	"context"
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// The errors of a store. Anything else is an outage: nothing may be concluded from it, not even whether
// a write took effect.
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

// Store is everything the plane keeps. All methods are safe for concurrent use. They take some time to
// fail: give the context a deadline, or the store sets one of its own. When the context ends they return
// an error that wraps the context's.
//
// Times are kept in UTC and microseconds, rounded down. Versions are commit times: of one document they
// only grow, and a write that changes nothing keeps the version. What a store takes and returns is
// copied: neither side sees what the other changes later.
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
	// returned with Broken saying why, and with all that did decode. A status that does not decode is
	// returned as if it had been lost, at least the part of the owner whose field is at fault; with
	// the next write of its owner it is mended.
	ListProxies(ctx context.Context) ([]fleet.Proxy, error)
	// GetProxy returns one document, or ErrNotFound.
	GetProxy(ctx context.Context, name string) (fleet.Proxy, error)
	// WriteStatus writes the named fields of p.Status if the document still has version
	// p.UpdateTime, and returns p with its new version. Fields of other owners, labels and spec are
	// never touched. ErrConflict when it changed or is gone; but when the document has these fields
	// already that is success, and it is returned as it is: so one's own repeated write succeeds.
	WriteStatus(ctx context.Context, p fleet.Proxy, fields StatusFields) (fleet.Proxy, error)
	// RemoveProxy removes the document if it still has version p.UpdateTime: ErrConflict otherwise;
	// absent is success.
	RemoveProxy(ctx context.Context, p fleet.Proxy) error
}

// Edit is what people change of a document. Fields that are nil or zero stay as they are.
type Edit struct {
	Labels     map[string]string // replaces all labels; empty but not nil removes them
	Spec       map[string]any    // replaces the spec, in the manifest's form
	DeleteTime time.Time
	RotateTime time.Time
}

// Operators are the documents as people use them.
type Operators interface {
	// CreateProxy makes a document of an edit and returns it: ErrExists when there is one. The name is
	// not judged: that is up to fleet.Validate, before.
	CreateProxy(ctx context.Context, name string, e Edit) (fleet.Proxy, error)
	// EditProxy changes a document if it still has version ifVersion (zero: whatever it is) and returns
	// it as it is then, perhaps with what others wrote in the same moment: ErrNotFound, ErrConflict.
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

// Slots are taken and freed one at a time; each method but GetSlot is one atomic commit, in one call
// to the store. The caller knows its own repeated commit by the LeaseID that it reads back.
type Slots interface {
	// CreateSlot takes a free slot and, when req is not nil, records the request in the same commit.
	// It returns the slot with Fence and Version, whatever they were in s. ErrExists when slot or
	// request exists.
	CreateSlot(ctx context.Context, s Slot, req *Request) (Slot, error)
	// ReplaceSlot overwrites the slot if it still has version s.Version: a renewal keeps s.Fence; a
	// takeover comes with Fence 0 and gets a new one. req as in CreateSlot. It returns the slot as it is
	// stored. ErrConflict when the slot changed or is gone; ErrExists when the request exists.
	ReplaceSlot(ctx context.Context, s Slot, req *Request) (Slot, error)
	// DeleteSlot frees the slot if it still has version s.Version; ErrConflict when it changed or is
	// gone.
	DeleteSlot(ctx context.Context, s Slot) error
	// GetSlot returns one slot, or ErrNotFound. A slot that somebody made unreadable has zero values
	// instead, which means that it expired long ago: so it comes into use again.
	GetSlot(ctx context.Context, proxy string, n int) (Slot, error)
}

// SlotViews read many slots. Expired slots are included wherever their documents still exist.
type SlotViews interface {
	// SlotsFrom returns up to limit slots in document-id order whose Proxy is at or behind from and,
	// when to is not empty, before to. One query. Document ids sort as strings: "a-1.0" comes before
	// "a.0", and "a.10" before "a.2". limit is at least 1.
	SlotsFrom(ctx context.Context, from, to string, limit int) ([]Slot, error)
	// ProxySlots returns all slots of one Proxy, in one query.
	ProxySlots(ctx context.Context, proxy string) ([]Slot, error)
	// CountSlots counts the slots that expire after liveAt.
	CountSlots(ctx context.Context, liveAt time.Time) (int64, error)
	// ExpiredSlots returns up to limit slots that expired before the given time, in any order. limit is
	// at least 1.
	ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]Slot, error)
}

// Requests answers for request ids, and remembers bans.
type Requests interface {
	// GetRequest returns what the request id led to, or ErrNotFound.
	GetRequest(ctx context.Context, key string) (Request, error)
	// RecordBan notes that lease leaseID was banned by target at the given time, forgets notes older
	// than window, and returns how many distinct leases are noted now for this Proxy and target. The
	// same lease counts once, by its latest report.
	RecordBan(ctx context.Context, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error)
}

// MaxShardEntries is how many entries one document of the catalog holds at most. Who fills shards keeps
// to it, and below 1 MiB a document.
const MaxShardEntries = 1000

// Shard is one document of the catalog.
type Shard struct {
	ID      int // from 0
	Entries map[string]fleet.Entry
	Version time.Time // zero: not stored yet
}

// Catalog is the compact view of all Proxies that leases are granted from.
type Catalog interface {
	// ReadCatalog returns all shards, by id, in one query. An empty catalog is no error. An entry that
	// somebody made unreadable is returned empty, so that the next run mends it.
	ReadCatalog(ctx context.Context) ([]Shard, error)
	// WriteShard puts and drops entries of one shard, leaving the others, if it still has version
	// s.Version (zero: it must not exist): ErrConflict otherwise, also for one's own repeated write.
	// s.Entries is not looked at. No name is both put and dropped; what is not there is dropped at no
	// harm. It returns the new version.
	WriteShard(ctx context.Context, s Shard, put map[string]fleet.Entry, drop []string) (time.Time, error)
	// SetVerdict sets the verdict of one entry and nothing else. ErrNotFound when there is no such
	// shard. Where there is no such entry it makes one of that alone, which is never ready.
	SetVerdict(ctx context.Context, shard int, name string, v fleet.Verdict) error
	// SetQuarantine keeps the Proxy from leases for target, a host of any spelling, until the given
	// time and changes nothing else. ErrNotFound and absent entries as in SetVerdict.
	SetQuarantine(ctx context.Context, shard int, name, target string, until time.Time) error
}

// Run is the one document about runs: the lock, and what one run leaves to the next.
type Run struct {
	Fence      int64     // grows with every holder while the document lasts; 0: there has been none
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
	// LockRun takes the lock for ttl and returns the document with a Fence of its own. ErrLocked, with
	// the document, when it is held and now is before its ExpireTime. holder names this one run: by it
	// a caller whose answer was lost knows, when it asks again, that the lock is its own.
	LockRun(ctx context.Context, holder string, now time.Time, ttl time.Duration) (Run, error)
	// UnlockRun stores r with an empty Holder if the lock is still the one that LockRun returned as r,
	// expired or not: ErrConflict otherwise. Its own repeated write, known by Fence and EndTime, counts
	// as success.
	UnlockRun(ctx context.Context, r Run) error
	// GetRun returns the document, the zero Run when there has been none.
	GetRun(ctx context.Context) (Run, error)
}
