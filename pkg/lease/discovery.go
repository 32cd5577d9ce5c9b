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
	LiveLeases  *int              `json:"liveLeases,omitempty"` // left out of lists while more than mostSlots are taken
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
	live, err := s.liveByProxy(ctx)
	if err != nil {
		return nil, away(err)
	}
	out := []ProxyView{}
	for i := range v.all {
		c := &v.all[i]
		if !f.Matches(c.Name, c.Entry) || state != "" && state != stateOf(c.Entry) {
			continue
		}
		view := s.viewOf(c)
		if live != nil {
			n := live[c.Name]
			view.LiveLeases = &n
		}
		out = append(out, view)
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
	if st.LiveLeases, err = s.live(ctx); err != nil {
		return Status{}, away(err)
	}
	st.FreeSlots = max(0, v.ready-st.LiveLeases)
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

// kept is a figure from the store that is used again for a while. Callers at the same time share a look.
type kept[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
}

func (k *kept[T]) get(now time.Time, limit time.Duration, look func() (T, error)) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.at.IsZero() && now.Sub(k.at) < limit {
		return k.value, nil
	}
	value, err := look()
	if err != nil {
		return value, err
	}
	k.at, k.value = now, value
	return value, nil
}

const (
	countKept = time.Second
	slotsKept = 5 * time.Second
	// mostSlots is how many documents a list of proxies may read to tell the live leases of each.
	mostSlots = 5000
)

// live counts live leases.
func (s *Service) live(ctx context.Context) (int, error) {
	now := s.Now()
	return s.count.get(now, countKept, func() (int, error) {
		n, err := s.Store.CountSlots(ctx, now)
		return int(n), err
	})
}

// liveByProxy counts live leases by proxy, nil where there are too many.
func (s *Service) liveByProxy(ctx context.Context) (map[string]int, error) {
	now := s.Now()
	return s.slots.get(now, slotsKept, func() (map[string]int, error) {
		slots, err := s.Store.SlotsFrom(ctx, "", "", mostSlots+1)
		if err != nil || len(slots) > mostSlots {
			return nil, err
		}
		live := map[string]int{}
		for _, slot := range slots {
			if slot.ExpireTime.After(now) {
				live[slot.Proxy]++
			}
		}
		return live, nil
	})
}

// measure returns the live leases and the free slots of ready proxies.
func (s *Service) measure(ctx context.Context) (live, free int, err error) {
	v, err := s.catalog.get(ctx)
	if err != nil {
		return 0, 0, err
	}
	live, err = s.live(ctx)
	return live, max(0, v.ready-live), err
}
