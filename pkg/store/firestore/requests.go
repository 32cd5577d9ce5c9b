package firestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"cloud.google.com/go/firestore"

	"crawl.example.com/proxyfleet/pkg/store"
)

// requestDocument and banDocument are forgotten by a TTL policy on expireAt; see Indexes.
type requestDocument struct {
	PayloadHash string    `firestore:"payloadHash"`
	LeaseID     string    `firestore:"leaseId"`
	ExpireTime  time.Time `firestore:"expireAt"`
}

type banDocument struct {
	Proxy      string               `firestore:"proxy"`
	Target     string               `firestore:"target"`
	Leases     map[string]time.Time `firestore:"leases"`
	ExpireTime time.Time            `firestore:"expireAt"`
}

// GetRequest implements store.Requests.
func (s *Store) GetRequest(ctx context.Context, key string) (store.Request, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	d, err := s.client.Collection(colRequests).Doc(key).Get(ctx)
	if err != nil {
		return store.Request{}, failure(ctx, "get request", key, err)
	}
	var doc requestDocument
	if err := d.DataTo(&doc); err != nil {
		return store.Request{}, failure(ctx, "decode request", key, err)
	}
	return store.Request{Key: key, PayloadHash: doc.PayloadHash, LeaseID: doc.LeaseID, ExpireTime: doc.ExpireTime.UTC()}, nil
}

// banTries bounds how often RecordBan starts over when others report for the same target at the
// same moment.
const banTries = 8

// RecordBan implements store.Requests.
func (s *Store) RecordBan(ctx context.Context, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	sum := sha256.Sum256([]byte(proxy + "\x00" + target))
	ref := s.client.Collection(colBans).Doc(hex.EncodeToString(sum[:16]))
	var err error
	for range banTries {
		var n int
		n, err = recordBan(ctx, ref, proxy, target, leaseID, micros(at), window)
		if err == nil || !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists) {
			return n, err
		}
	}
	return 0, err
}

func recordBan(ctx context.Context, ref *firestore.DocumentRef, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error) {
	d, err := ref.Get(ctx)
	err = failure(ctx, "get ban", ref.ID, err)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	doc := banDocument{Proxy: proxy, Target: target}
	if err == nil {
		if err := d.DataTo(&doc); err != nil {
			return 0, failure(ctx, "decode ban", ref.ID, err)
		}
	}
	leases := map[string]time.Time{leaseID: at}
	for id, t := range doc.Leases {
		if id != leaseID && !t.Before(at.Add(-window)) {
			leases[id] = t
		}
	}
	doc.Leases, doc.ExpireTime = leases, at.Add(window)
	if err != nil {
		_, err = ref.Create(ctx, doc)
		return len(leases), failure(ctx, "create ban", ref.ID, err)
	}
	_, err = ref.Update(ctx, []firestore.Update{{Path: "leases", Value: leases}, {Path: "expireAt", Value: doc.ExpireTime}}, firestore.LastUpdateTime(d.UpdateTime))
	return len(leases), failure(ctx, "update ban", ref.ID, err)
}
