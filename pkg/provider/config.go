package provider

import "context"

// Config is one entry of the providers file: one cloud account under a name that Proxy documents use.
type Config struct {
	Name         string // name that spec.provider refers to
	Type         string // which constructor builds it: "mock" or "gcp"
	MaxInstances int    // cap on instances of this provider, replacements included; 0 means none

}

// Constructor builds a provider of one type from its entry.
type Constructor func(ctx context.Context, c Config) (Provider, error)
