package main

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (c *cli) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "describe NAME", Short: "Explain a proxy: why it is as it is, what comes next, what happened to it",
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			p, err := s.GetProxy(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			slots, err := s.ProxySlots(cmd.Context(), p.Name)
			if err != nil {
				return err
			}
			return c.describe(p, slots)
		},
	}
}

func (c *cli) describe(p fleet.Proxy, slots []store.Slot) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			fmt.Fprintf(w, "%s\t%s\n", what, printable(text))
		}
	}
	x := fleet.Explain(p, c.now())
	row("Name", "%s", p.Name)
	row("State", "%s, for %s", x.State, c.ago(x.Since))
	row("Why", "%s", x.Why)
	row("Next", "%s", x.Next)
	row("Mode", "%s %s", p.Spec.Mode, p.Spec.Provider)
	row("Labels", "%s", labels(p))
	row("Address", "%s", address(p))
	c.describeInstance(row, "Instance", p.Status.Instance)
	c.describeInstance(row, "Successor", p.Status.Next)
	h := p.Status.Health
	if !h.LastProbeTime.IsZero() {
		row("Last probe", "%s, %d ms, %s ago: %s", h.Outcome, h.LatencyMs, c.ago(h.LastProbeTime), fleet.OutcomeText(h.Outcome))
	}
	row("Leaves by", "%s", h.ExitAddress)
	row("Leases", "%s", leases(p, slots, c.now()))
	if err := w.Flush(); err != nil {
		return err
	}
	var conditions, history [][]string
	for _, cond := range p.Status.Conditions {
		conditions = append(conditions, []string{"  " + string(cond.Type), fmt.Sprint(cond.Status), c.ago(cond.LastTransitionTime), printable(cond.Reason), printable(cond.Message)})
	}
	for _, e := range slices.Backward(p.Status.Events) {
		history = append(history, []string{"  " + c.ago(e.Time) + " ago", printable(e.Reason), printable(e.Message)})
	}
	c.section("Conditions", conditions)
	c.section("History", history)
	return nil
}

func (c *cli) describeInstance(row func(string, string, ...any), what string, i *fleet.Instance) {
	if i == nil {
		return
	}
	state := i.State
	if state == "" {
		state = "asked for"
	}
	row(what, "%s (number %d), %s, zone %s, asked for %s ago", i.Name, i.Incarnation, state, i.Zone, c.ago(i.IntentTime))
}

func leases(p fleet.Proxy, slots []store.Slot, now time.Time) string {
	live := 0
	for _, s := range slots {
		if s.ExpireTime.After(now) {
			live++
		}
	}
	return fmt.Sprintf("%d live of %d", live, p.Spec.MaxLeasesOrDefault())
}

func (c *cli) section(title string, rows [][]string) {
	fmt.Fprintf(c.out, "\n%s\n", title)
	if len(rows) == 0 {
		fmt.Fprintln(c.out, "  none yet")
		return
	}
	(&table{}).print(c.out, rows, func(_, text string) string { return text })
}
