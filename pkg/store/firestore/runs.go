package firestore

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/firestore"

	"crawl.example.com/proxyfleet/pkg/store"
)

type runDocument struct {
	Fence      int64                `firestore:"fence"`
	Holder     string               `firestore:"holder"`
	ExpireTime time.Time            `firestore:"expireTime"`
	Cursor     string               `firestore:"cursor"`
	Orphans    map[string]time.Time `firestore:"orphans"`
	Cooldowns  map[string]time.Time `firestore:"cooldowns"`
	Summary    string               `firestore:"summary"`
	EndTime    time.Time            `firestore:"endTime"`
}

func (s *Store) runRef() *firestore.DocumentRef { return s.client.Collection(colRuns).Doc("reconcile") }

// GetRun implements store.Runs.
func (s *Store) GetRun(ctx context.Context) (store.Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	d, err := s.runRef().Get(ctx)
	err = failure(ctx, "get", "run", err)
	if errors.Is(err, store.ErrNotFound) {
		return store.Run{}, nil
	}
	if err != nil {
		return store.Run{}, err
	}
	var doc runDocument
	// A document that somebody made unreadable is taken as a free lock; its fence goes on from the clock.
	if d.DataTo(&doc) != nil {
		doc = runDocument{Fence: d.UpdateTime.UnixMicro()}
	}
	return store.Run{
		Fence: doc.Fence, Holder: doc.Holder, ExpireTime: doc.ExpireTime.UTC(), Cursor: doc.Cursor, Orphans: doc.Orphans,
		Cooldowns: doc.Cooldowns, Summary: []byte(doc.Summary), EndTime: doc.EndTime.UTC(), Version: d.UpdateTime.UTC(),
	}, nil
}

// LockRun implements store.Runs. It costs a read and a write.
func (s *Store) LockRun(ctx context.Context, holder string, now time.Time, ttl time.Duration) (store.Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	have, err := s.GetRun(ctx)
	if err != nil {
		return have, err
	}
	if have.Holder != "" && now.Before(have.ExpireTime) {
		return have, store.ErrLocked
	}
	want := have
	want.Fence++
	want.Holder, want.ExpireTime = holder, micros(now.Add(ttl))
	return s.writeRun(ctx, want)
}

// UnlockRun implements store.Runs.
func (s *Store) UnlockRun(ctx context.Context, r store.Run) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r.Holder, r.ExpireTime = "", time.Time{}
	_, err := s.writeRun(ctx, r)
	if errors.Is(err, store.ErrLocked) {
		return store.ErrConflict
	}
	return err
}

// writeRun writes the document if it still has version r.Version. When it has not, that may be the
// client's own repeated commit; else somebody else has the lock: ErrLocked, with what is there.
func (s *Store) writeRun(ctx context.Context, r store.Run) (store.Run, error) {
	doc := runDocument{
		Fence: r.Fence, Holder: r.Holder, ExpireTime: r.ExpireTime, Cursor: r.Cursor, Orphans: r.Orphans,
		Cooldowns: r.Cooldowns, Summary: string(r.Summary), EndTime: micros(r.EndTime),
	}
	var result *firestore.WriteResult
	var err error
	if r.Version.IsZero() {
		result, err = s.runRef().Create(ctx, doc)
	} else {
		result, err = s.runRef().Update(ctx, []firestore.Update{
			{Path: "fence", Value: doc.Fence}, {Path: "holder", Value: doc.Holder}, {Path: "expireTime", Value: doc.ExpireTime},
			{Path: "cursor", Value: doc.Cursor}, {Path: "orphans", Value: doc.Orphans}, {Path: "cooldowns", Value: doc.Cooldowns},
			{Path: "summary", Value: doc.Summary}, {Path: "endTime", Value: doc.EndTime},
		}, firestore.LastUpdateTime(r.Version))
	}
	if err == nil {
		r.Version = result.UpdateTime.UTC()
		return r, nil
	}
	err = failure(ctx, "write", "run", err)
	if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	have, getErr := s.GetRun(ctx)
	if getErr != nil {
		return r, getErr
	}
	if have.Fence == r.Fence && have.Holder == r.Holder && have.EndTime.Equal(micros(r.EndTime)) {
		return have, nil
	}
	return have, store.ErrLocked
}
