package reconcile

import (
	"context"
	"io"

	"crawl.example.com/proxyfleet/pkg/provider/registry"
)

// CheckProviders names all faults of a providers file, as the function would when it starts. It asks
// no cloud.
func CheckProviders(ctx context.Context, path string) error {
	_, built, err := registry.Load(ctx, path, constructors())
	for _, p := range built {
		if c, ok := p.(io.Closer); ok {
			_ = c.Close()
		}
	}
	return err
}
