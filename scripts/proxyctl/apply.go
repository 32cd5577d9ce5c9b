package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/manifest"
	"crawl.example.com/proxyfleet/pkg/store"
)

func (c *cli) validateCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIR|-",
		Short: "Name every fault of manifests, without asking anybody",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			items, err := c.read(files)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%d valid\n", len(items))
			return nil
		},
	}
	addFiles(cmd, &files)
	return cmd
}

func addFiles(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "manifest: a file, a folder, or - for standard input; may be repeated")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
}

// read reads manifests and prints each fault on a line of its own.
func (c *cli) read(files []string) ([]manifest.Item, error) {
	if len(files) == 0 {
		return nil, usageError{errors.New("which manifest? -f FILE, -f DIR or -f -")}
	}
	items, err := manifest.ReadPaths(files, c.in, nil)
	var faults manifest.Faults
	if errors.As(err, &faults) {
		fmt.Fprintln(c.errs, printableLines(faults.Error()))
		fmt.Fprintf(c.errs, "proxyctl: %s\n", count(len(faults), "fault"))
		return nil, exitError(exitFailed)
	}
	return items, err
}

func (c *cli) applyCommand() *cobra.Command {
	var files []string
	var dryRun bool
	var wait waiter
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Create or change proxies as manifests say",
		Long: `Apply creates or changes proxies as manifests say. All are checked before the first is written, also against what is stored:
mode and provider cannot change. A proxy that somebody else changes in the same moment is left as it is, with exit code 4.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			items, err := c.read(files)
			if err != nil {
				return err
			}
			return c.apply(cmd.Context(), items, dryRun, wait)
		},
	}
	addFiles(cmd, &files)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would change and change nothing")
	wait.addFlags(cmd, "until every proxy is Ready")
	return cmd
}

// change is what apply does to one document.
type change struct {
	item   manifest.Item
	verb   string
	stored fleet.Proxy
}

func (c *cli) apply(ctx context.Context, items []manifest.Item, dryRun bool, wait waiter) error {
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	changes, err := c.plan(ctx, s, items)
	if err != nil {
		return err
	}
	var names []string
	for _, ch := range changes {
		names = append(names, ch.item.Name)
		if dryRun {
			fmt.Fprintf(c.out, "%s %s (dry run)\n", ch.item.Name, ch.verb)
			continue
		}
		if err := write(ctx, s, ch); err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s %s\n", ch.item.Name, ch.verb)
	}
	if dryRun {
		return nil
	}
	return c.wait(ctx, wait, names, patient(c.now(), becomesReady))
}

// plan compares manifests with what is stored; it refuses all of them for a fault of one.
func (c *cli) plan(ctx context.Context, s store.Store, items []manifest.Item) ([]change, error) {
	var changes []change
	faults := 0
	for _, item := range items {
		stored, err := s.GetProxy(ctx, item.Name)
		if errors.Is(err, store.ErrNotFound) {
			changes = append(changes, change{item: item, verb: "created"})
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, f := range fleet.ValidateUpdate(stored, item.Proxy) {
			fmt.Fprintln(c.errs, manifest.Fault{Source: item.Source, Line: item.Line, Name: item.Name, Fault: f}.Error())
			faults++
		}
		if !stored.DeleteTime.IsZero() {
			fmt.Fprintf(c.errs, "%s:%d: %s: is being deleted; apply it again when it is gone\n", item.Source, item.Line, item.Name)
			faults++
		}
		changes = append(changes, change{item: item, verb: verbOf(stored, item), stored: stored})
	}
	if faults > 0 {
		fmt.Fprintf(c.errs, "proxyctl: %s, nothing was written\n", count(faults, "fault"))
		return nil, exitError(exitFailed)
	}
	return changes, nil
}

func verbOf(stored fleet.Proxy, item manifest.Item) string {
	sameLabels := maps.Equal(stored.Labels, item.Labels)
	if len(stored.Broken) == 0 && sameLabels && reflect.DeepEqual(fleet.Encode(stored.Spec), fleet.Encode(item.Proxy.Spec)) {
		return "unchanged"
	}
	return "changed"
}

func write(ctx context.Context, s store.Store, ch change) error {
	edit := store.Edit{Labels: ch.item.Labels, Spec: ch.item.Spec}
	var err error
	switch ch.verb {
	case "unchanged":
		return nil
	case "created":
		err = create(ctx, s, ch.item.Name, edit)
	default:
		err = editWishes(ctx, s, ch.stored, edit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", ch.item.Name, err)
	}
	return nil
}

// create makes a document; one that is there and wishes the same is our own, written twice.
func create(ctx context.Context, s store.Store, name string, edit store.Edit) error {
	_, err := s.CreateProxy(ctx, name, edit)
	if !errors.Is(err, store.ErrExists) {
		return err
	}
	now, err := s.GetProxy(ctx, name)
	if err != nil {
		return err
	}
	if wishes(now, edit) {
		return nil
	}
	return store.ErrConflict
}

// editTries bounds how often an edit starts over because the plane wrote its status meanwhile.
const editTries = 5

// editWishes writes on condition that nobody changed labels or spec since they were looked at; the
// plane's own writes in between are no reason to give up.
func editWishes(ctx context.Context, s store.Store, stored fleet.Proxy, edit store.Edit) error {
	for range editTries {
		_, err := s.EditProxy(ctx, stored.Name, edit, stored.UpdateTime)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		now, err := s.GetProxy(ctx, stored.Name)
		if err != nil {
			return err
		}
		if wishes(now, edit) { // our own write, repeated, or somebody who wanted the same
			return nil
		}
		if !sameWishes(stored, now) {
			return store.ErrConflict
		}
		stored = now
	}
	return store.ErrConflict
}

// wishes reports whether p is as edit makes it.
func wishes(p fleet.Proxy, edit store.Edit) bool {
	spec, faults := fleet.Decode(edit.Spec)
	return len(faults) == 0 && len(p.Broken) == 0 && p.DeleteTime.IsZero() && reflect.DeepEqual(fleet.Encode(p.Spec), fleet.Encode(spec)) &&
		(edit.Labels == nil || maps.Equal(p.Labels, edit.Labels))
}

// sameWishes reports whether what people wrote of a document is the same.
func sameWishes(a, b fleet.Proxy) bool {
	return maps.Equal(a.Labels, b.Labels) && reflect.DeepEqual(a.Spec, b.Spec) && reflect.DeepEqual(a.Broken, b.Broken) &&
		a.DeleteTime.Equal(b.DeleteTime) && a.RotateTime.Equal(b.RotateTime) && a.CreateTime.Equal(b.CreateTime)
}
