package firestore

import (
	"context"
	"hash/fnv"
	"time"

	"cloud.google.com/go/firestore"

	"crawl.example.com/proxyfleet/pkg/store"
)

// slotBuckets spread an index on expireTime: an index on a field that only grows would cap the
// collection at 500 writes a second (cloud.google.com/firestore/docs/best-practices).
const slotBuckets = 16

// slotDocument is a slot as it is stored. Fence is absent until the first renewal: before it, the
// document's own update time is the commit time that took the slot.
type slotDocument struct {
	Proxy       string    `firestore:"proxy"`
	N           int       `firestore:"n"`
	LeaseID     string    `firestore:"leaseId"`
	Incarnation int64     `firestore:"incarnation"`
	Holder      string    `firestore:"holder"`
	RequestID   string    `firestore:"requestId"`
	Target      string    `firestore:"target"`
	Rebound     bool      `firestore:"rebound"`
	AcquireTime time.Time `firestore:"acquireTime"`
	ExpireTime  time.Time `firestore:"expireTime"`
	Bucket      int       `firestore:"bucket"`
	Fence       int64     `firestore:"fence,omitempty"`
}

func slotToDocument(s store.Slot) slotDocument {
	return slotDocument{
		Proxy: s.Proxy, N: s.N, LeaseID: s.LeaseID, Incarnation: s.Incarnation, Holder: s.Holder, RequestID: s.RequestID,
		Target: s.Target, Rebound: s.Rebound, AcquireTime: micros(s.AcquireTime), ExpireTime: micros(s.ExpireTime),
		Bucket: bucketOf(s.LeaseID), Fence: s.Fence,
	}
}

// bucketOf spreads leases evenly, as their ids are random.
func bucketOf(leaseID string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(leaseID))
	return int(h.Sum32() % slotBuckets)
}

// documentToSlot reads a slot; ok is false when the document's id is none of a slot. A slot whose expiry
// somebody made unreadable counts as expired long ago, so that it comes into use again.
func documentToSlot(d *firestore.DocumentSnapshot) (slot store.Slot, ok bool) {
	proxy, n, ok := store.ParseSlotID(d.Ref.ID)
	data := d.Data()
	slot = store.Slot{
		Proxy: proxy, N: n, LeaseID: field[string](data, "leaseId"), Incarnation: field[int64](data, "incarnation"),
		Holder: field[string](data, "holder"), RequestID: field[string](data, "requestId"), Target: field[string](data, "target"),
		Rebound: field[bool](data, "rebound"), AcquireTime: field[time.Time](data, "acquireTime"), ExpireTime: field[time.Time](data, "expireTime"),
		Fence: field[int64](data, "fence"), Version: d.UpdateTime.UTC(),
	}
	if slot.Fence == 0 {
		slot.Fence = slot.Version.UnixMicro()
	}
	return slot, ok
}

func (s *Store) slot(proxy string, n int) *firestore.DocumentRef {
	return s.client.Collection(colSlots).Doc(store.SlotID(proxy, n))
}

// CreateSlot implements store.Slots.
func (s *Store) CreateSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	slot.Fence = 0
	ref, doc := s.slot(slot.Proxy, slot.N), slotToDocument(slot)
	var result *firestore.WriteResult
	var err error
	if req == nil {
		result, err = s.writes.do(ctx, &write{
			ref:   ref,
			alone: func(ctx context.Context) (*firestore.WriteResult, error) { return ref.Create(ctx, doc) },
			join:  func(b *firestore.BulkWriter) (*firestore.BulkWriterJob, error) { return b.Create(ref, doc) },
		})
	} else {
		result, err = s.withRequest(ctx, *req, func(b *batch) { b.Create(ref, doc) })
	}
	if err != nil {
		return slot, refused(ctx, "create slot", store.SlotID(slot.Proxy, slot.N), err)
	}
	return taken(slot, doc, result), nil
}

// ReplaceSlot implements store.Slots.
func (s *Store) ReplaceSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref, doc := s.slot(slot.Proxy, slot.N), slotToDocument(slot)
	updates, condition := slotUpdates(doc), ifVersion(slot.Version)
	var result *firestore.WriteResult
	var err error
	if req == nil {
		result, err = ref.Update(ctx, updates, condition)
	} else {
		result, err = s.withRequest(ctx, *req, func(b *batch) { b.Update(ref, updates, condition) })
	}
	if err != nil {
		return slot, refused(ctx, "replace slot", store.SlotID(slot.Proxy, slot.N), err)
	}
	return taken(slot, doc, result), nil
}

// taken fills in what the commit decided.
func taken(slot store.Slot, doc slotDocument, result *firestore.WriteResult) store.Slot {
	slot.AcquireTime, slot.ExpireTime = doc.AcquireTime, doc.ExpireTime
	slot.Version = result.UpdateTime.UTC()
	if slot.Fence == 0 {
		slot.Fence = slot.Version.UnixMicro()
	}
	return slot
}

func slotUpdates(doc slotDocument) []firestore.Update {
	var fence any = firestore.Delete
	if doc.Fence != 0 {
		fence = doc.Fence
	}
	return []firestore.Update{
		{Path: "proxy", Value: doc.Proxy}, {Path: "n", Value: doc.N}, {Path: "bucket", Value: doc.Bucket},
		{Path: "leaseId", Value: doc.LeaseID}, {Path: "incarnation", Value: doc.Incarnation}, {Path: "holder", Value: doc.Holder},
		{Path: "requestId", Value: doc.RequestID}, {Path: "target", Value: doc.Target}, {Path: "rebound", Value: doc.Rebound},
		{Path: "acquireTime", Value: doc.AcquireTime}, {Path: "expireTime", Value: doc.ExpireTime}, {Path: "fence", Value: fence},
	}
}

//lint:ignore SA1019 BulkWriter is not atomic, and a transaction begins with a call of its own
type batch = firestore.WriteBatch

// withRequest commits a write on a slot together with the request that it answers. A batch is one
// commit without locks; a transaction would cost a second call.
func (s *Store) withRequest(ctx context.Context, req store.Request, write func(*batch)) (*firestore.WriteResult, error) {
	b := s.client.Batch() //lint:ignore SA1019 BulkWriter is not atomic, and a transaction begins with a call of its own
	write(b)
	b.Create(s.client.Collection(colRequests).Doc(req.Key), requestDocument{PayloadHash: req.PayloadHash, LeaseID: req.LeaseID, ExpireTime: micros(req.ExpireTime)})
	results, err := b.Commit(ctx)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// DeleteSlot implements store.Slots.
func (s *Store) DeleteSlot(ctx context.Context, slot store.Slot) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref, condition := s.slot(slot.Proxy, slot.N), ifVersion(slot.Version)
	_, err := s.writes.do(ctx, &write{
		ref:   ref,
		alone: func(ctx context.Context) (*firestore.WriteResult, error) { return ref.Delete(ctx, condition) },
		join:  func(b *firestore.BulkWriter) (*firestore.BulkWriterJob, error) { return b.Delete(ref, condition) },
	})
	return refused(ctx, "delete slot", store.SlotID(slot.Proxy, slot.N), err)
}

// GetSlot implements store.Slots.
func (s *Store) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	d, err := get(ctx, "get slot", s.slot(proxy, n))
	if err != nil {
		return store.Slot{}, err
	}
	slot, _ := documentToSlot(d)
	return slot, nil
}
