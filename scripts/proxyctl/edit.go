package main

import (
	"cmp"
	"context"
	"errors"
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

func isGone(p *fleet.Proxy, now time.Time) (bool, string, error) {
	if p == nil {
		return true, "gone", nil
	}
	x := fleet.Explain(*p, now)
	return false, x.State + ": " + x.Next, nil
}

func (c *cli) rotateCommand() *cobra.Command {
	var wait waiter
	before := map[string]int64{} // incarnations that are to go
	cmd := c.named("rotate NAME...", "Replace VMs by fresh ones, with a new address, before the old ones go", func(ctx context.Context, s store.Store, p fleet.Proxy) (string, error) {
		if p.Spec.Mode != fleet.Managed {
			return "", errors.New("is External: there is no VM of ours to replace")
		}
		before[p.Name] = p.Status.Incarnation
		_, err := s.EditProxy(ctx, p.Name, store.Edit{RotateTime: c.now()}, time.Time{})
		return "will be rotated", err
	}, &wait, func(p *fleet.Proxy, now time.Time) (bool, string, error) {
		done, progress, err := isReady(p, now)
		if err != nil || p.Status.Instance == nil {
			return false, progress, err
		}
		fresh := p.Status.Next == nil && p.Status.Instance.Incarnation > before[p.Name]
		switch serving := p.Status.Endpoint; {
		case !done || fresh:
		case serving != nil && serving.Incarnation > before[p.Name]:
			progress = "the fresh VM serves; " + cmp.Or(fleet.Explain(*p, now).Next, "the one before is deleted")
		default:
			progress = "waits for the fresh VM: " + cmp.Or(p.Status.Replacing, "the next run begins it")
		}
		return done && fresh, progress, nil
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
			return "", fmt.Errorf("cannot be changed while its document is broken:\n%w", p.Broken)
		}
		word := map[bool]string{true: "paused", false: "resumed"}[paused]
		if p.Spec.Paused == paused {
			return "is " + word + " already", nil
		}
		spec := fleet.Encode(p.Spec)
		spec["paused"] = paused
		return word, editWishes(ctx, s, p, store.Edit{Spec: spec})
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
			return c.wait(cmd.Context(), *wait, names, patient(c.now(), done))
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would change and change nothing")
	return cmd
}
