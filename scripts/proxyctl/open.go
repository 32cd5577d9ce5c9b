package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// opener reaches a store; close may be nil.
type opener func(ctx context.Context, project, database string) (s store.Store, closeStore func() error, err error)

func openFirestore(ctx context.Context, project, database string) (store.Store, func() error, error) {
	s, err := firestore.Open(ctx, project, database)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// store opens the store when the first command needs it.
func (c *cli) store(ctx context.Context) (store.Store, error) {
	if c.opened != nil {
		return c.opened, nil
	}
	if c.project == "" {
		return nil, usageError{errors.New("which project? set PROJECT_ID or --project")}
	}
	var err error
	c.opened, c.closeStore, err = c.open(ctx, c.project, c.database)
	return c.opened, err
}

func (c *cli) close() {
	if c.closeStore != nil {
		_ = c.closeStore()
	}
}

// completeNames completes the names of proxies.
func (c *cli) completeNames(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, err := c.store(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	proxies, err := s.ListProxies(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, p := range proxies {
		if !slices.Contains(given, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
