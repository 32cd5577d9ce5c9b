package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with the plane itself: access, indexes, runs, catalog", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			sick := 0
			for _, check := range checks() {
				finding, err := check.run(cmd.Context(), s, c.now())
				mark := "ok  "
				if err != nil {
					mark, finding = "FAIL", err.Error()
					sick++
				}
				fmt.Fprintf(c.out, "%s  %-12s %s\n", mark, check.name, finding)
			}
			if sick > 0 {
				return exitError(exitFailed)
			}
			return nil
		},
	}
}

type check struct {
	name string
	run  func(ctx context.Context, s store.Store, now time.Time) (finding string, err error)
}

func checks() []check {
	return []check{
		{"documents", checkDocuments}, {"indexes", checkIndexes}, {"last run", checkRun}, {"catalog", checkCatalog},
	}
}

func checkDocuments(ctx context.Context, s store.Store, now time.Time) (string, error) {
	proxies, err := s.ListProxies(ctx)
	if err != nil {
		return "", fmt.Errorf("proxies cannot be read: %w; you need roles/datastore.user", err)
	}
	states := map[string]int{}
	for _, p := range proxies {
		states[fleet.Explain(p, now).State]++
	}
	if n := states[string(fleet.GateRejected)]; n > 0 {
		return "", fmt.Errorf("%d of %d documents break a rule: see proxyctl get proxies -o wide", n, len(proxies))
	}
	data, _ := json.Marshal(states)
	return fmt.Sprintf("%d proxies %s", len(proxies), data), nil
}

// checkIndexes runs the queries that need a composite index: without it they fail, and only they do.
func checkIndexes(ctx context.Context, s store.Store, now time.Time) (string, error) {
	if _, err := s.ExpiredSlots(ctx, now.Add(-time.Hour), 1); err != nil {
		return "", fmt.Errorf("expired slots cannot be found: %w; deploy makes the index", err)
	}
	live, err := s.CountSlots(ctx, now)
	if err != nil {
		return "", fmt.Errorf("slots cannot be counted: %w; deploy makes the index", err)
	}
	return fmt.Sprintf("there; %d leases live", live), nil
}

// overdue is after how long without a finished run something is wrong: the tick is a minute.
const overdue = 5 * time.Minute

func checkRun(ctx context.Context, s store.Store, now time.Time) (string, error) {
	r, err := s.GetRun(ctx)
	switch {
	case err != nil:
		return "", err
	case r.EndTime.IsZero():
		return "", errors.New("none has finished yet: does the scheduler call the reconcile function?")
	case now.Sub(r.EndTime) > overdue:
		return "", fmt.Errorf("finished %s ago: does the scheduler call the reconcile function?", now.Sub(r.EndTime).Round(time.Second))
	}
	return fmt.Sprintf("finished %s ago %s", now.Sub(r.EndTime).Round(time.Second), r.Summary), nil
}

func checkCatalog(ctx context.Context, s store.Store, _ time.Time) (string, error) {
	shards, err := s.ReadCatalog(ctx)
	if err != nil {
		return "", err
	}
	proxies, err := s.ListProxies(ctx)
	if err != nil {
		return "", err
	}
	entries, ready := 0, 0
	for _, shard := range shards {
		entries += len(shard.Entries)
		for _, e := range shard.Entries {
			if e.Ready() {
				ready++
			}
		}
	}
	if entries != len(proxies) {
		return "", fmt.Errorf("%d entries for %d documents; the next run should mend it", entries, len(proxies))
	}
	return fmt.Sprintf("%d entries, %d of them can be leased", entries, ready), nil
}
