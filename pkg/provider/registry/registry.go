// Package registry builds the configured providers from constructors that it is given, so that only
// the caller links their clouds.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Load reads the providers file at path and builds its providers. The error names all faults of the
// file, those of its form together with those that the constructors find.
func Load(ctx context.Context, path string, constructors map[string]provider.Constructor) ([]provider.Config, map[string]provider.Provider, error) {
	configs, err := provider.LoadConfigs(path)
	var faults provider.ConfigFaults
	if err != nil && !errors.As(err, &faults) {
		return nil, nil, err
	}
	built, found := build(ctx, configs, constructors)
	if err := append(faults, found...).Err(); err != nil {
		discard(built)
		return nil, nil, fmt.Errorf("providers file %s: %w", path, err)
	}
	return configs, built, nil
}

// Build returns the provider of every entry, by its name. constructors maps types to what builds
// them. When anything is wrong with any entry, such as an unknown type, a name that is used twice or
// what a constructor finds, it returns no provider and provider.ConfigFaults with all of it.
func Build(ctx context.Context, configs []provider.Config, constructors map[string]provider.Constructor) (map[string]provider.Provider, error) {
	built, faults := build(ctx, configs, constructors)
	if err := append(faults, provider.CheckNames(configs)...).Err(); err != nil {
		discard(built)
		return nil, err
	}
	return built, nil
}

// build calls the constructor of every entry, whatever is wrong with the others.
func build(ctx context.Context, configs []provider.Config, constructors map[string]provider.Constructor) (map[string]provider.Provider, provider.ConfigFaults) {
	built := map[string]provider.Provider{}
	var faults provider.ConfigFaults
	for _, c := range configs {
		construct, known := constructors[c.Type]
		if !known {
			if c.Type != "" { // else it is a fault already
				faults = append(faults, unknownType(c, constructors))
			}
			continue
		}
		p, err := construct(ctx, c)
		if err != nil {
			faults = append(faults, faultsOf(c, err)...)
			continue
		}
		if taken, ok := built[c.Name]; ok {
			discard(map[string]provider.Provider{c.Name: taken})
		}
		built[c.Name] = p
	}
	return built, faults
}

func unknownType(c provider.Config, constructors map[string]provider.Constructor) provider.ConfigFault {
	known := strings.Join(slices.Sorted(maps.Keys(constructors)), ", ")
	return c.Fault("type", fmt.Sprintf("%q is not known; known are %s", c.Type, known))
}

// faultsOf returns what a constructor found, one fault per line of its text where it does not say
// which.
func faultsOf(c provider.Config, err error) provider.ConfigFaults {
	var faults provider.ConfigFaults
	if errors.As(err, &faults) {
		return faults
	}
	for line := range strings.Lines(err.Error()) {
		faults = append(faults, c.Fault("", strings.TrimSpace(line)))
	}
	return faults
}

// discard closes the providers that will not be used.
func discard(built map[string]provider.Provider) {
	for _, p := range built {
		if closer, ok := p.(io.Closer); ok {
			_ = closer.Close()
		}
	}
}
