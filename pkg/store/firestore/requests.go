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
	d, err := get(ctx, "get request", s.client.Collection(colRequests).Doc(key))
	if err != nil {
		return store.Request{}, err
	}
	data := d.Data()
	return store.Request{
		Key: key, PayloadHash: field[string](data, "payloadHash"), LeaseID: field[string](data, "leaseId"), ExpireTime: field[time.Time](data, "expireAt"),
	}, nil
}

// banTries bounds how often RecordBan starts over when others report for the same target at the
// same moment.
const banTries = 8

// RecordBan implements store.Requests.
func (s *Store) RecordBan(ctx context.Context, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref := s.client.Collection(colBans).Doc(banID(proxy, target))
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

func banID(proxy, target string) string {
	sum := sha256.Sum256([]byte(proxy + "\x00" + target))
	return hex.EncodeToString(sum[:16])
}

func recordBan(ctx context.Context, ref *firestore.DocumentRef, proxy, target, leaseID string, at time.Time, window time.Duration) (int, error) {
	d, err := get(ctx, "get ban", ref)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	leases := map[string]time.Time{leaseID: at}
	if err == nil {
		for id, t := range times(d.Data(), "leases") {
			if id != leaseID && !t.Before(at.Add(-window)) {
				leases[id] = t
			}
		}
	}
	doc := banDocument{Proxy: proxy, Target: target, Leases: leases, ExpireTime: at.Add(window)}
	if err != nil {
		_, err = ref.Create(ctx, doc)
		return len(leases), refused(ctx, "create ban", ref.ID, err)
	}
	_, err = ref.Update(ctx, []firestore.Update{{Path: "leases", Value: leases}, {Path: "expireAt", Value: doc.ExpireTime}}, ifVersion(d.UpdateTime))
	return len(leases), refused(ctx, "update ban", ref.ID, err)
}
