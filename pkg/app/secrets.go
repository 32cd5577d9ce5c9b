package app

import (
	"time"

	"crawl.example.com/proxyfleet/pkg/secret"
)

// Secrets returns the resolver that the configuration asks for: a folder, or the project's Secret
// Manager, which is reached when the first secret is needed. Values are kept for some minutes, so
// that a rotated secret is seen.
func Secrets(c Config) secret.Resolver {
	var of secret.Resolver = secret.NewManager(c.ProjectID)
	if c.SecretsDir != "" {
		of = secret.NewDirectory(c.SecretsDir)
	}
	return secret.NewCache(of, time.Now)
}
