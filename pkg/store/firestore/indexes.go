package firestore

// Index is a composite index that a query of this package needs. Fields are ascending.
type Index struct {
	Collection string
	Fields     []string
}

// Field names one field of one collection.
type Field struct{ Collection, Field string }

// Indexes returns the composite indexes that the queries need. The emulator never asks for them, the
// cloud does.
func Indexes() []Index {
	return []Index{{Collection: colSlots, Fields: []string{"bucket", "expireTime"}}}
}

// TTLs returns the fields by which Firestore is to forget documents: garbage collection only, up to a
// day late; nothing relies on it.
func TTLs() []Field {
	return []Field{{colRequests, "expireAt"}, {colBans, "expireAt"}}
}

// Exemptions returns the fields that must not be indexed one by one: because they are large, because
// they hold thousands of entries, or because they only grow and would cap the write rate.
func Exemptions() []Field {
	return []Field{
		{colProxies, "status"}, {colProxies, "spec.cloudInit"},
		{colCatalog, fieldEntries},
		{colSlots, "expireTime"}, {colSlots, "acquireTime"}, {colSlots, "fence"}, {colSlots, "leaseId"},
		{colRequests, "expireAt"}, {colRequests, "payloadHash"}, {colRequests, "leaseId"},
		{colBans, "leases"}, {colBans, "expireAt"},
		{colRuns, "summary"}, {colRuns, "orphans"}, {colRuns, "cooldowns"},
	}
}
