package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (c *cli) deleteCommand() *cobra.Command {
	var wait waiter
	cmd := c.named("delete NAME...", "Delete proxies: no new leases, live ones may end first, then the VM goes", func(ctx context.Context, s store.Store, p fleet.Proxy) (string, error) {
		if !p.DeleteTime.IsZero() {
			return "is being deleted already", nil
		}
		_, err := s.EditProxy(ctx, p.Name, store.Edit{DeleteTime: c.now()}, time.Time{})
		return "will be deleted", err
	}, &wait, isGone)
	wait.addFlags(cmd, "until VM and document are gone")
	return cmd
}

func isGone(p *fleet.Proxy, now time.Time) (bool, string) {
	if p == nil {
		return true, "gone"
	}
	x := fleet.Explain(*p, now)
	return false, x.State + ": " + x.Next
}

func (c *cli) rotateCommand() *cobra.Command {
	var wait waiter
	var asked time.Time
	cmd := c.named("rotate NAME...", "Replace VMs by fresh ones, with a new address, before the old ones go", func(ctx context.Context, s store.Store, p fleet.Proxy) (string, error) {
		if p.Spec.Mode != fleet.Managed {
			return "", fmt.Errorf("%s is External: there is no VM of ours to replace", p.Name)
		}
		asked = c.now()
		_, err := s.EditProxy(ctx, p.Name, store.Edit{RotateTime: asked}, time.Time{})
		return "will be rotated", err
	}, &wait, func(p *fleet.Proxy, now time.Time) (bool, string) {
		if p == nil {
			return true, "gone"
		}
		fresh := p.Status.Next == nil && p.Status.Instance != nil && p.Status.Instance.IntentTime.After(asked.Add(-time.Second))
		ready, progress := isReady(p, now)
		return fresh && ready, progress
	})
	wait.addFlags(cmd, "until the fresh VM is Ready and the old one is gone")
	return cmd
}

func (c *cli) pauseCommand() *cobra.Command {
	return c.named("pause NAME...", "Grant no new leases and leave the cloud alone; probes go on", setPaused(true), nil, nil)
}

func (c *cli) resumeCommand() *cobra.Command {
	return c.named("resume NAME...", "End a pause", setPaused(false), nil, nil)
}

func setPaused(paused bool) func(context.Context, store.Store, fleet.Proxy) (string, error) {
	return func(ctx context.Context, s store.Store, p fleet.Proxy) (string, error) {
		if len(p.Broken) > 0 {
			return "", fmt.Errorf("%s cannot be changed while its document is broken:\n%w", p.Name, p.Broken)
		}
		word := map[bool]string{true: "paused", false: "resumed"}[paused]
		if p.Spec.Paused == paused {
			return "is " + word + " already", nil
		}
		spec := fleet.Encode(p.Spec)
		spec["paused"] = paused
		_, err := s.EditProxy(ctx, p.Name, store.Edit{Spec: spec}, p.UpdateTime)
		return word, err
	}
}

// named makes a command that does one thing to each of the named proxies.
func (c *cli) named(use, short string, do func(context.Context, store.Store, fleet.Proxy) (string, error), wait *waiter, done condition) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			s, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range names {
				p, err := s.GetProxy(cmd.Context(), name)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if dryRun {
					fmt.Fprintf(c.out, "%s would be changed: %s (dry run)\n", name, cmd.Name())
					continue
				}
				said, err := do(cmd.Context(), s, p)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				fmt.Fprintln(c.out, name, said)
			}
			if dryRun || wait == nil {
				return nil
			}
			return c.wait(cmd.Context(), *wait, names, done)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would change and change nothing")
	return cmd
}
