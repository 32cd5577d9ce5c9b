package firestore

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"crawl.example.com/proxyfleet/pkg/store"
)

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
	return s.slots(ctx, "from "+from, q)
}

// ProxySlots implements store.SlotViews.
func (s *Store) ProxySlots(ctx context.Context, proxy string) ([]store.Slot, error) {
	slots := s.client.Collection(colSlots)
	// ':' follows the digits, so that all ids with the prefix lie between.
	q := slots.OrderBy(firestore.DocumentID, firestore.Asc).StartAt(slots.Doc(store.SlotPrefix(proxy))).EndBefore(slots.Doc(store.SlotPrefix(proxy) + ":"))
	return s.slots(ctx, "of "+proxy, q)
}

// ExpiredSlots implements store.SlotViews.
func (s *Store) ExpiredSlots(ctx context.Context, before time.Time, limit int) ([]store.Slot, error) {
	q := s.client.Collection(colSlots).Where("bucket", "in", allBuckets()).Where("expireTime", "<", micros(before)).Limit(limit)
	return s.slots(ctx, "that expired", q)
}

func (s *Store) slots(ctx context.Context, what string, q firestore.Query) ([]store.Slot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	docs, err := q.Documents(ctx).GetAll()
	if err != nil {
		return nil, outage(ctx, "list slots", what, err)
	}
	out := make([]store.Slot, 0, len(docs))
	for _, d := range docs {
		if slot, ok := documentToSlot(d); ok { // else somebody put it there by hand
			out = append(out, slot)
		}
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
		return 0, outage(ctx, "count", colSlots, err)
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
