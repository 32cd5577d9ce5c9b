package firestore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/status"
)

// The bounds of writes that go together.
const (
	aloneAtOnce  = 4                      // commits under way, up to which a write goes alone and at once
	mostTogether = 20                     // writes in one call: the client's BulkWriter sends no more
	leastLeft    = 500 * time.Millisecond // a write with less time left goes alone: it must not cut others short
)

// writes sends the writes of single documents that many callers make at once. While few are under way
// each is a commit of its own. Those that come while aloneAtOnce are under way wait for one of them to
// end, and go together in one call that is not atomic: each succeeds or fails as it would alone. What
// such a call leaves open is done again, alone. So a function under load spends less on each.
type writes struct {
	client *firestore.Client

	mu       sync.Mutex
	underWay int
	waiting  []*write
}

// write is one write of one document, in the two forms that the client knows.
type write struct {
	ref   *firestore.DocumentRef
	alone func(context.Context) (*firestore.WriteResult, error)
	join  func(*firestore.BulkWriter) (*firestore.BulkWriterJob, error)

	deadline time.Time
	answer   chan written // has room for one: who asked may be gone
}

type written struct {
	result *firestore.WriteResult
	err    error
}

// errLeftOpen says that a write is to be done alone.
var errLeftOpen = errors.New("left open")

// do returns what became of w. ctx must have a deadline.
func (ws *writes) do(ctx context.Context, w *write) (*firestore.WriteResult, error) {
	w.deadline, _ = ctx.Deadline()
	if time.Until(w.deadline) < leastLeft {
		return w.alone(ctx)
	}
	if ws.begin(w) {
		defer ws.end()
		return w.alone(ctx)
	}
	var a written
	select {
	case a = <-w.answer:
	case <-ctx.Done():
		if ws.forget(w) {
			return nil, ctx.Err()
		}
		a = <-w.answer // it is on its way, for no longer than its deadline: what becomes of it must be known
	}
	if errors.Is(a.err, errLeftOpen) {
		return w.alone(ctx)
	}
	return a.result, a.err
}

// begin reports whether w may go at once; if not, it waits.
func (ws *writes) begin(w *write) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.underWay < aloneAtOnce {
		ws.underWay++
		return true
	}
	w.answer = make(chan written, 1)
	ws.waiting = append(ws.waiting, w)
	return false
}

// end hands the place of a call that ended to those that wait.
func (ws *writes) end() {
	group := ws.next()
	if len(group) == 0 {
		return
	}
	go func() {
		for ; len(group) > 0; group = ws.next() {
			ws.send(group)
		}
	}()
}

// next takes those that go next, no two of them for one document; when nobody waits, one call less is
// under way. Those that waited too long go alone.
func (ws *writes) next() []*write {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var group, rest []*write
	for _, w := range ws.waiting {
		switch {
		case time.Until(w.deadline) < leastLeft:
			w.answer <- written{err: errLeftOpen}
		case len(group) == mostTogether || slices.ContainsFunc(group, w.sameDocument):
			rest = append(rest, w)
		default:
			group = append(group, w)
		}
	}
	ws.waiting = rest
	if len(group) == 0 {
		ws.underWay--
	}
	return group
}

func (w *write) sameDocument(other *write) bool { return w.ref.Path == other.ref.Path }

// forget takes out a write that waits in vain, if it is still waiting.
func (ws *writes) forget(w *write) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	i := slices.Index(ws.waiting, w)
	if i < 0 {
		return false
	}
	ws.waiting = slices.Delete(ws.waiting, i, i+1)
	return true
}

// send makes one call of a group, within the time of the most hurried one, and answers all.
func (ws *writes) send(group []*write) {
	deadline := group[0].deadline
	for _, w := range group {
		if w.deadline.Before(deadline) {
			deadline = w.deadline
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if len(group) == 1 {
		result, err := group[0].alone(ctx)
		group[0].answer <- written{result, err}
		return
	}
	bulk := ws.client.BulkWriter(ctx)
	jobs := make([]*firestore.BulkWriterJob, len(group))
	errs := make([]error, len(group))
	for i, w := range group {
		jobs[i], errs[i] = w.join(bulk)
	}
	bulk.End()
	for i, w := range group {
		a := written{err: errs[i]}
		if a.err == nil {
			a.result, a.err = jobs[i].Results()
		}
		if a.err != nil && classOf(status.Code(a.err)) == nil {
			a.err = errLeftOpen
		}
		w.answer <- a
	}
}
