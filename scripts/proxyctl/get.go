package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (c *cli) getCommand() *cobra.Command {
	var output string
	var watch bool
	var selector []string
	cmd := &cobra.Command{
		Use:   "get proxies [NAME...]",
		Short: "Show proxies",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"proxies"}, cobra.ShellCompDirectiveNoFileComp
			}
			return c.completeNames(cmd, args, typed)
		},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || !slices.Contains([]string{"proxies", "proxy"}, args[0]) {
				return errors.New("say what to get: proxies")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			show, ok := map[string]func(io.Writer, []fleet.Proxy) error{
				"table": c.tabular(false), "wide": c.tabular(true), "yaml": asYAML(), "json": asJSON(len(args) == 2),
			}[output]
			if !ok {
				return usageError{fmt.Errorf("-o %s: must be table, wide, yaml or json", output)}
			}
			labels, err := parseLabels(selector)
			if err != nil {
				return usageError{err}
			}
			return c.get(cmd.Context(), args[1:], labels, watch, show)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, wide, yaml or json")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing what changes")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "wide", "yaml", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringArrayVarP(&selector, "label", "l", nil, "only those with label k=v; may be repeated")
	return cmd
}

func parseLabels(selector []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, s := range selector {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--label %s: must be k=v", s)
		}
		labels[k] = v
	}
	return labels, nil
}

func (c *cli) get(ctx context.Context, names []string, labels map[string]string, watch bool, show func(io.Writer, []fleet.Proxy) error) error {
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	shown := map[string]fleet.Proxy{}
	for first := true; ; first = false {
		proxies, err := c.find(ctx, s, names, labels)
		switch {
		case err != nil && watch && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if changed := news(shown, proxies); first || len(changed) > 0 {
			if err := show(c.out, changed); err != nil {
				return err
			}
		}
		if !watch {
			return nil
		}
		timer := time.NewTimer(c.poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// stateGone is what a watch shows of a proxy that was there and is no more.
const stateGone = "Gone"

// news returns what differs from what was shown, and notes it.
func news(shown map[string]fleet.Proxy, now []fleet.Proxy) []fleet.Proxy {
	var out []fleet.Proxy
	there := map[string]bool{}
	for _, p := range now {
		there[p.Name] = true
		if before, ok := shown[p.Name]; !ok || !before.UpdateTime.Equal(p.UpdateTime) {
			out = append(out, p)
		}
		shown[p.Name] = p
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if !there[name] {
			gone := shown[name]
			gone.Status.Phase = stateGone
			out = append(out, gone)
			delete(shown, name)
		}
	}
	return out
}

// find returns the named proxies, or all with the labels. A name that is not there is an error.
func (c *cli) find(ctx context.Context, s store.Store, names []string, labels map[string]string) ([]fleet.Proxy, error) {
	if len(names) == 0 {
		all, err := s.ListProxies(ctx)
		return slices.DeleteFunc(all, func(p fleet.Proxy) bool { return !hasLabels(p, labels) }), err
	}
	var out []fleet.Proxy
	for _, name := range names {
		p, err := s.GetProxy(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if hasLabels(p, labels) {
			out = append(out, p)
		}
	}
	return out, nil
}

func hasLabels(p fleet.Proxy, want map[string]string) bool {
	for k, v := range want {
		if have, ok := p.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

func (c *cli) row(p fleet.Proxy, wide bool) []string {
	x := fleet.Explain(p, c.now())
	if p.Status.Phase == stateGone {
		x = fleet.Explanation{State: stateGone, Why: "VM and document are gone"}
	}
	row := []string{p.Name, x.State, c.ago(x.Since), cmp.Or(string(p.Status.Health.Outcome), "-"), latency(p), string(p.Spec.Mode), c.ago(born(p))}
	if wide {
		row = append(row, address(p), zone(p), instance(p), labels(p), x.Why)
	}
	for i, cell := range row {
		row[i] = cmp.Or(printable(cell), "-")
	}
	return row
}

func latency(p fleet.Proxy) string {
	if p.Status.Health.Outcome != fleet.OutcomeOK {
		return "-"
	}
	return fmt.Sprint(p.Status.Health.LatencyMs)
}

func born(p fleet.Proxy) time.Time {
	if i := p.Status.Instance; i != nil && !i.CreateTime.IsZero() {
		return i.CreateTime
	}
	return p.CreateTime
}

func address(p fleet.Proxy) string {
	host := p.EffectiveHost()
	if host == "" {
		return "-"
	}
	return fmt.Sprintf("%s:%d", host, p.EffectivePort())
}

func zone(p fleet.Proxy) string {
	if p.Status.Instance == nil {
		return "-"
	}
	return cmp.Or(p.Status.Instance.Zone, "-")
}

func instance(p fleet.Proxy) string {
	if p.Status.Instance == nil {
		return "-"
	}
	return p.Status.Instance.Name
}

func labels(p fleet.Proxy) string {
	var out []string
	for k, v := range p.Labels {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(out, ","), "-")
}

// ago writes how long ago t is, as people say it.
func (c *cli) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := max(c.now().Sub(t), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
