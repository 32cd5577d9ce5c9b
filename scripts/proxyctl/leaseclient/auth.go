package leaseclient

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials/idtoken"
)

// APIKey authorizes by a fixed token: an API key, or an ID token that somebody else fetched.
func APIKey(key string) Authorize {
	return func(context.Context) (string, error) { return key, nil }
}

// IDToken authorizes by Google ID tokens of the service account that this machine runs as, for the
// function at base. They are fetched when first needed, and again before they end.
func IDToken(base string) Authorize {
	var once sync.Once
	var creds *auth.Credentials
	var failed error
	return func(ctx context.Context) (string, error) {
		once.Do(func() { creds, failed = idtoken.NewCredentials(&idtoken.Options{Audience: audience(base)}) })
		if failed != nil {
			return "", noToken(failed)
		}
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		token, err := creds.Token(ctx)
		if err != nil {
			return "", noToken(err)
		}
		return token.Value, nil
	}
}

func noToken(err error) error {
	return fmt.Errorf("no Google ID token (people: export PROXYFLEET_API_KEY=$(gcloud auth print-identity-token)): %w", err)
}

// audience is what Cloud Run expects of a token: the service's URL without a path.
func audience(base string) string {
	scheme, rest, _ := strings.Cut(base, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}
