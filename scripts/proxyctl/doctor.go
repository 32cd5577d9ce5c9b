package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/client"
	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (c *cli) doctorCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with the plane itself: access, indexes, runs, catalog, lease function", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			sick := 0
			for _, check := range c.checks(url) {
				finding, err := check.run(cmd.Context(), s, c.now())
				mark := "ok  "
				if err != nil {
					mark, finding = "FAIL", err.Error()
					sick++
				}
				fmt.Fprintf(c.out, "%s  %-14s  %s\n", c.paint(c.out, strings.TrimSpace(mark), mark), check.name, printable(finding))
			}
			if sick > 0 {
				return exitError(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", os.Getenv(envLeaseURL), "also ask this lease function (LEASE_URL)")
	return cmd
}

type check struct {
	name string
	run  func(ctx context.Context, s store.Store, now time.Time) (finding string, err error)
}

func (c *cli) checks(url string) []check {
	all := []check{
		{"configuration", c.checkConfiguration}, {"documents", checkDocuments}, {"indexes", checkIndexes}, {"last run", checkRun}, {"catalog", checkCatalog},
	}
	return append(all, check{"lease function", func(ctx context.Context, _ store.Store, _ time.Time) (string, error) {
		if url == "" {
			return "not asked: give its address as --url or LEASE_URL", nil
		}
		return checkLease(ctx, url)
	}})
}

// checkConfiguration says what is looked at; a wrong project is the most frequent mistake of all.
func (c *cli) checkConfiguration(context.Context, store.Store, time.Time) (string, error) {
	finding := fmt.Sprintf("project %s, database %s", c.project, c.database)
	if host := os.Getenv("FIRESTORE_EMULATOR_HOST"); host != "" {
		finding += ", on the emulator at " + host
	}
	return finding, nil
}

// checkLease asks the lease function how the fleet is.
func checkLease(ctx context.Context, url string) (string, error) {
	if _, err := client.New(client.Config{URL: url}); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/v1/status", nil)
	if err != nil {
		return "", err
	}
	if token := tokenFor(url); token != nil {
		bearer, err := token(ctx)
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	straight := &http.Transport{DisableKeepAlives: true} // through no proxy
	resp, err := straight.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("does not answer: %w", err)
	}
	defer resp.Body.Close()
	var s struct {
		Version    string `json:"version"`
		LiveLeases int    `json:"liveLeases"`
		FreeSlots  int    `json:"freeSlots"`
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answers %s", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s); err != nil {
		return "", errors.New("its answer cannot be read; is the URL the lease function's?")
	}
	return fmt.Sprintf("version %s answers: %d leases live, %d slots free", s.Version, s.LiveLeases, s.FreeSlots), nil
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
	var counts []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		counts = append(counts, fmt.Sprintf("%d %s", states[state], state))
	}
	return strings.Join(append([]string{fmt.Sprintf("%d proxies", len(proxies))}, counts...), ", "), nil
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
	return fmt.Sprintf("finished %s ago", now.Sub(r.EndTime).Round(time.Second)), nil
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
	entries, ready := map[string]bool{}, 0
	for _, shard := range shards {
		for name, e := range shard.Entries {
			entries[name] = true
			if e.Ready() {
				ready++
			}
		}
	}
	missing := 0
	for _, p := range proxies {
		if !entries[p.Name] {
			missing++
		}
	}
	if foreign := len(entries) - (len(proxies) - missing); missing > 0 || foreign > 0 {
		return "", fmt.Errorf("%d proxies without an entry, %d entries without a proxy; the next run should mend it", missing, foreign)
	}
	return fmt.Sprintf("%d entries, %d of them can be leased", len(entries), ready), nil
}
