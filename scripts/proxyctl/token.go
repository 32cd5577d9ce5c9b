package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials/idtoken"

	"crawl.example.com/proxyfleet/pkg/client"
)

// envAPIKey holds what lets a caller in: an API key, or an ID token that somebody fetched.
const envAPIKey = "PROXYFLEET_API_KEY" //nolint:gosec // the name of a variable

// tokenFor chooses how to say who calls the lease function at base.
func tokenFor(base string) client.Token {
	if key := os.Getenv(envAPIKey); key != "" {
		return func(context.Context) (string, error) { return key, nil }
	}
	if u, err := url.Parse(base); err == nil && u.Scheme == "https" {
		return idToken(u.Scheme + "://" + u.Host) // Cloud Run expects the service's URL without a path
	}
	return nil
}

// idToken returns Google ID tokens of the service account that this machine runs as. The first is
// fetched when it is needed, the next before that one ends.
func idToken(audience string) client.Token {
	credentials := sync.OnceValues(func() (*auth.Credentials, error) {
		return idtoken.NewCredentials(&idtoken.Options{Audience: audience})
	})
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		creds, err := credentials()
		if err != nil {
			return "", noToken(err)
		}
		token, err := creds.Token(ctx)
		if err != nil {
			return "", noToken(err)
		}
		return token.Value, nil
	}
}

func noToken(err error) error {
	return fmt.Errorf("no Google ID token (people: export %s=$(gcloud auth print-identity-token)): %w", envAPIKey, err)
}
