package lease

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// ProxyView is a proxy as discovery shows it: no credentials.
type ProxyView struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Mode        string            `json:"mode,omitempty"`
	Provider    string            `json:"provider,omitempty"`
	Region      string            `json:"region,omitempty"`
	State       string            `json:"state"`
	Reason      string            `json:"reason,omitempty"`
	Since       time.Time         `json:"since,omitzero"`
	MaxLeases   int32             `json:"maxLeases"`
	Capacity    int32             `json:"capacity"`
	LiveLeases  *int              `json:"liveLeases,omitempty"` // of one proxy; the list does not read every slot
	Quarantined []string          `json:"quarantined,omitempty"`
}

// Status sums the plane up. Live leases come from the store, whatever instance granted them.
type Status struct {
	States     map[string]int  `json:"states"`
	LiveLeases int             `json:"liveLeases"`
	FreeSlots  int             `json:"freeSlots"`
	Capacity   int             `json:"capacity"`
	LastRun    json.RawMessage `json:"lastRun,omitempty"`
	LastRunEnd time.Time       `json:"lastRunEnd,omitzero"`
	Version    string          `json:"version"`
}

// Proxies lists the proxies that match the labels and, when it is not empty, are in the state.
func (s *Service) Proxies(ctx context.Context, f Filter, state string) ([]ProxyView, error) {
	v, err := s.catalog.get(ctx)
	if err != nil {
		return nil, err
	}
	out := []ProxyView{}
	for i := range v.all {
		c := &v.all[i]
		if f.Matches(c.Name, c.Entry) && (state == "" || state == stateOf(c.Entry)) {
			out = append(out, s.viewOf(c))
		}
	}
	return out, nil
}

// Proxy shows one proxy with its live leases.
func (s *Service) Proxy(ctx context.Context, name string) (ProxyView, error) {
	v, err := s.catalog.get(ctx)
	if err != nil {
		return ProxyView{}, err
	}
	c := v.byName[name]
	if c == nil {
		return ProxyView{}, refuse(ProxyNotFound, "there is no proxy of that name")
	}
	slots, err := s.Store.ProxySlots(ctx, name)
	if err != nil {
		return ProxyView{}, away(err)
	}
	live := 0
	for _, slot := range slots {
		if slot.ExpireTime.After(s.Now()) {
			live++
		}
	}
	view := s.viewOf(c)
	view.LiveLeases = &live
	return view, nil
}

func (s *Service) viewOf(c *Candidate) ProxyView {
	e := c.Entry
	out := ProxyView{
		Name: c.Name, Labels: e.Labels, Mode: string(e.Mode), Provider: e.Provider, Region: e.Region, State: stateOf(e), Reason: reasonOf(e),
		Since: e.Verdict.Since, MaxLeases: e.MaxLeases, Capacity: e.Capacity,
	}
	for host, until := range e.Quarantine {
		if until.After(s.Now()) {
			out.Quarantined = append(out.Quarantined, host)
		}
	}
	return out
}

// Status sums up.
func (s *Service) Status(ctx context.Context, version string) (Status, error) {
	v, err := s.catalog.get(ctx)
	if err != nil {
		return Status{}, err
	}
	st := Status{States: map[string]int{}, Version: version}
	for i := range v.all {
		st.States[stateOf(v.all[i].Entry)]++
	}
	st.Capacity = v.ready
	if st.LiveLeases, err = s.live(ctx, v.ready); err != nil {
		return Status{}, away(err)
	}
	st.FreeSlots = max(0, st.Capacity-st.LiveLeases)
	run, err := s.Store.GetRun(ctx)
	if err != nil {
		return Status{}, away(err)
	}
	st.LastRunEnd = run.EndTime
	if json.Valid(run.Summary) {
		st.LastRun = run.Summary
	}
	return st, nil
}

// counted is the number of live leases, kept for a second.
type counted struct {
	mu sync.Mutex
	at time.Time
	n  int
}

const countKept = time.Second

// live counts live leases; ready is the number of slots of all ready proxies, for the gauge of free ones.
func (s *Service) live(ctx context.Context, ready int) (int, error) {
	s.count.mu.Lock()
	defer s.count.mu.Unlock()
	now := s.Now()
	if !s.count.at.IsZero() && now.Sub(s.count.at) < countKept {
		return s.count.n, nil
	}
	n, err := s.Store.CountSlots(ctx, now)
	if err != nil {
		return 0, err
	}
	s.count.at, s.count.n = now, int(n)
	if s.Metrics != nil {
		s.Metrics.live.Set(float64(n))
		s.Metrics.free.Set(float64(max(0, ready-int(n))))
	}
	return int(n), nil
}
