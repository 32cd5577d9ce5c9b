package firestore

import (
	"context"
	"errors"
	"fmt"
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
	d, err := get(ctx, "get run", s.runRef())
	if errors.Is(err, store.ErrNotFound) {
		return store.Run{}, nil
	}
	if err != nil {
		return store.Run{}, err
	}
	data := d.Data()
	r := store.Run{
		Fence: field[int64](data, "fence"), Holder: field[string](data, "holder"), ExpireTime: field[time.Time](data, "expireTime"),
		Cursor: field[string](data, "cursor"), Orphans: times(data, "orphans"), Cooldowns: times(data, "cooldowns"),
		EndTime: field[time.Time](data, "endTime"), Version: d.UpdateTime.UTC(),
	}
	if summary := field[string](data, "summary"); summary != "" {
		r.Summary = []byte(summary)
	}
	if r.Fence == 0 { // somebody lost it: any larger one will do
		r.Fence = r.Version.UnixMicro()
	}
	return r, nil
}

// LockRun implements store.Runs. It costs a read and a write.
func (s *Store) LockRun(ctx context.Context, holder string, now time.Time, ttl time.Duration) (store.Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	have, err := s.GetRun(ctx)
	if err != nil {
		return store.Run{}, err
	}
	if have.Holder != "" && now.Before(have.ExpireTime) {
		return have, store.ErrLocked
	}
	want := have
	want.Fence++
	want.Holder, want.ExpireTime = holder, micros(now.Add(ttl))
	got, err := s.writeRun(ctx, want)
	if !errors.Is(err, store.ErrConflict) {
		return got, err
	}
	// Somebody was faster; or it was this very write, which the client repeated.
	have, err = s.GetRun(ctx)
	if err != nil {
		return store.Run{}, err
	}
	if have.Fence == want.Fence && have.Holder == holder {
		return have, nil
	}
	return have, store.ErrLocked
}

// unlockTries bounds how often UnlockRun starts over when the document was changed by hand.
const unlockTries = 3

// UnlockRun implements store.Runs.
func (s *Store) UnlockRun(ctx context.Context, r store.Run) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if r.Fence == 0 {
		return store.ErrConflict // no lock has it
	}
	want := r
	want.Holder, want.ExpireTime, want.EndTime = "", time.Time{}, micros(r.EndTime)
	var err error
	for range unlockTries {
		if _, err = s.writeRun(ctx, want); !errors.Is(err, store.ErrConflict) {
			return err
		}
		have, getErr := s.GetRun(ctx)
		switch {
		case getErr != nil:
			return getErr
		case have.Fence == r.Fence && have.Holder == "" && have.EndTime.Equal(want.EndTime):
			return nil // it was this very write, which the client repeated
		case have.Fence != r.Fence || have.Holder != r.Holder:
			return err
		}
		want.Version = have.Version // changed by hand, and the lock is still ours
	}
	return err
}

// writeRun writes the document if it still has version r.Version: ErrConflict otherwise.
func (s *Store) writeRun(ctx context.Context, r store.Run) (store.Run, error) {
	doc := runDocument{
		Fence: r.Fence, Holder: r.Holder, ExpireTime: r.ExpireTime, Cursor: r.Cursor, Orphans: r.Orphans,
		Cooldowns: r.Cooldowns, Summary: string(r.Summary), EndTime: r.EndTime,
	}
	var result *firestore.WriteResult
	var err error
	if r.Version.IsZero() {
		result, err = s.runRef().Create(ctx, doc)
	} else {
		result, err = s.runRef().Update(ctx, runUpdates(doc), ifVersion(r.Version))
	}
	err = refused(ctx, "write", "run", err)
	if errors.Is(err, store.ErrExists) {
		err = fmt.Errorf("create run: %w: it exists", store.ErrConflict)
	}
	if err != nil {
		return r, err
	}
	r.Version = result.UpdateTime.UTC()
	return r, nil
}

func runUpdates(doc runDocument) []firestore.Update {
	return []firestore.Update{
		{Path: "fence", Value: doc.Fence}, {Path: "holder", Value: doc.Holder}, {Path: "expireTime", Value: doc.ExpireTime},
		{Path: "cursor", Value: doc.Cursor}, {Path: "orphans", Value: doc.Orphans}, {Path: "cooldowns", Value: doc.Cooldowns},
		{Path: "summary", Value: doc.Summary}, {Path: "endTime", Value: doc.EndTime},
	}
}
