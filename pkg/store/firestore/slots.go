package firestore

import (
	"context"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"

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
		Bucket: rand.IntN(slotBuckets), Fence: s.Fence,
	}
}

func documentToSlot(d *firestore.DocumentSnapshot) (store.Slot, error) {
	var doc slotDocument
	if err := d.DataTo(&doc); err != nil {
		return store.Slot{}, err
	}
	s := store.Slot{
		Proxy: doc.Proxy, N: doc.N, LeaseID: doc.LeaseID, Incarnation: doc.Incarnation, Holder: doc.Holder, RequestID: doc.RequestID,
		Target: doc.Target, Rebound: doc.Rebound, AcquireTime: doc.AcquireTime.UTC(), ExpireTime: doc.ExpireTime.UTC(),
		Fence: doc.Fence, Version: d.UpdateTime.UTC(),
	}
	if s.Fence == 0 {
		s.Fence = s.Version.UnixMicro()
	}
	return s, nil
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
		result, err = ref.Create(ctx, doc)
	} else {
		result, err = s.withRequest(ctx, *req, func(b *batch) { b.Create(ref, doc) })
	}
	if err != nil {
		return slot, failure(ctx, "create slot", ref.ID, err)
	}
	return taken(slot, doc, result), nil
}

// ReplaceSlot implements store.Slots.
func (s *Store) ReplaceSlot(ctx context.Context, slot store.Slot, req *store.Request) (store.Slot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref, doc := s.slot(slot.Proxy, slot.N), slotToDocument(slot)
	updates, condition := slotUpdates(doc), firestore.LastUpdateTime(slot.Version)
	var result *firestore.WriteResult
	var err error
	if req == nil {
		result, err = ref.Update(ctx, updates, condition)
	} else {
		result, err = s.withRequest(ctx, *req, func(b *batch) { b.Update(ref, updates, condition) })
	}
	if err != nil {
		return slot, failure(ctx, "replace slot", ref.ID, err)
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
	ref := s.slot(slot.Proxy, slot.N)
	_, err := ref.Delete(ctx, firestore.LastUpdateTime(slot.Version))
	return failure(ctx, "delete slot", ref.ID, err)
}

// GetSlot implements store.Slots.
func (s *Store) GetSlot(ctx context.Context, proxy string, n int) (store.Slot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref := s.slot(proxy, n)
	d, err := ref.Get(ctx)
	if err != nil {
		return store.Slot{}, failure(ctx, "get slot", ref.ID, err)
	}
	return documentToSlot(d)
}

// SlotsFrom implements store.SlotViews.
func (s *Store) SlotsFrom(ctx context.Context, from, to string, limit int) ([]store.Slot, error) {
	slots := s.client.Collection(colSlots)
	q := slots.OrderBy(firestore.DocumentID, firestore.Asc).Limit(limit)
	if from != "" {
		q = q.StartAt(slots.Doc(store.SlotPrefix(from)))
	}
	if to != "" {
		q = q.EndBefore(slots.Doc(store.SlotPrefix(to)))
	}
	return s.slots(ctx, "list slots from "+from, q)
}

// ProxySlots implements store.SlotViews.
func (s *Store) ProxySlots(ctx context.Context, proxy string) ([]store.Slot, error) {
	slots := s.client.Collection(colSlots)
	// ':' follows the digits, so that all ids with the prefix lie between.
	q := slots.OrderBy(firestore.DocumentID, firestore.Asc).StartAt(slots.Doc(store.SlotPrefix(proxy))).EndBefore(slots.Doc(store.SlotPrefix(proxy) + ":"))
	return s.slots(ctx, "list slots of "+proxy, q)
}

// ExpiredSlots implements store.SlotViews.
func (s *Store) ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]store.Slot, error) {
	q := s.client.Collection(colSlots).Where("bucket", "in", allBuckets()).Where("expireTime", "<", micros(before)).Limit(limit)
	return s.slots(ctx, "list expired slots", q)
}

func (s *Store) slots(ctx context.Context, op string, q firestore.Query) ([]store.Slot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	docs, err := q.Documents(ctx).GetAll()
	if err != nil {
		return nil, failure(ctx, op, "", err)
	}
	out := make([]store.Slot, 0, len(docs))
	for _, d := range docs {
		slot, err := documentToSlot(d)
		if err != nil {
			continue // not a slot: somebody put it there by hand
		}
		out = append(out, slot)
	}
	return out, nil
}

// CountSlots implements store.SlotViews.
func (s *Store) CountSlots(ctx context.Context, liveAt time.Time) (int64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	q := s.client.Collection(colSlots).Where("bucket", "in", allBuckets()).Where("expireTime", ">", micros(liveAt))
	result, err := q.NewAggregationQuery().WithCount("n").Get(ctx)
	if err != nil {
		return 0, failure(ctx, "count", colSlots, err)
	}
	value, _ := result["n"].(*firestorepb.Value)
	return value.GetIntegerValue(), nil
}

func allBuckets() []int {
	out := make([]int, slotBuckets)
	for i := range out {
		out[i] = i
	}
	return out
}
