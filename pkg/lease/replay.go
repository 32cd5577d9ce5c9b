package lease

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// requestMemory is how long a request id is remembered beyond the longest lease.
const requestMemory = 24 * time.Hour

// request is the document that remembers the request id, nil without one. It is committed together
// with the slot, so that neither exists without the other.
func (a *attempt) request(s store.Slot) *store.Request {
	if a.r.RequestID == "" {
		return nil
	}
	return &store.Request{Key: a.r.requestKey(), PayloadHash: a.r.payloadHash(), LeaseID: s.LeaseID, ExpireTime: a.Now().Add(requestMemory)}
}

// requestKey is the document's id: holders cannot meet in each other's request ids.
func (r Request) requestKey() string { return hash(r.Holder, r.RequestID) }

// payloadHash tells whether the same request is asked again. How long to wait is no part of it.
func (r Request) payloadHash() string {
	if r.payload != "" {
		return r.payload
	}
	data, _ := json.Marshal([]any{r.Holder, r.TTL, r.Labels, r.Provider, r.Region, r.Exclude, r.Target, r.StickyKey})
	return hash(string(data))
}

func hash(parts ...string) string {
	data, _ := json.Marshal(parts)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:20])
}

// replay answers a request that has been answered before: with the same lease while it lives.
func (a *attempt) replay() (l Lease, replayed bool, err error) {
	if a.r.RequestID == "" {
		return Lease{}, false, nil
	}
	req, err := a.Store.GetRequest(a.ctx, a.r.requestKey())
	if errors.Is(err, store.ErrNotFound) {
		return Lease{}, false, nil
	}
	if err != nil {
		return Lease{}, true, away(err)
	}
	if req.PayloadHash != a.r.payloadHash() {
		return Lease{}, true, refuse(RequestIDReused, "requestId was used before with another request; use a new one")
	}
	slot, err := a.find(a.ctx, req.LeaseID)
	if err != nil {
		return Lease{}, true, err
	}
	e := a.view.entry(slot.Proxy)
	creds, err := a.credentials(a.ctx, e.Credentials)
	if err != nil {
		return Lease{}, true, err
	}
	return answer(slot, e, creds), true, nil
}

// replayOr answers a repeated request whose fleet has no room any more, else refuses with why.
func (a *attempt) replayOr(why *Error) (Lease, error) {
	if l, replayed, err := a.replay(); replayed {
		return l, err
	}
	return Lease{}, why
}
