package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/secret"
)

// credentials resolves what the proxy asks for. A secret that is not there, or is no credentials, is
// the proxy's own fault: nobody can use it. One that cannot be read now says nothing about the proxy.
func (s *Sweeper) credentials(ctx context.Context, p fleet.Proxy, tick time.Time) (*Credentials, *fault) {
	ref := p.Spec.Endpoint.CredentialsSecretRef
	if ref == nil {
		return nil, nil
	}
	payload, err := s.Secrets.Resolve(ctx, ref.Name, ref.Key)
	switch {
	case errors.Is(err, secret.ErrNotFound):
		return nil, &fault{outcome: fleet.OutcomeAuthFailed, detail: "not asked, for its secret is not there", certain: true}
	case errors.Is(err, secret.ErrInvalid):
		return nil, badCredentials()
	case err != nil:
		if s.warned.first(tick, ref.Name+"/"+ref.Key) {
			s.Log.WarnContext(ctx, "credentials cannot be resolved", "proxy", p.Name, "secret", ref.Name, "key", ref.Key, "error", err.Error())
		}
		return nil, &fault{outcome: fleet.OutcomeInconclusive, detail: "the credentials cannot be resolved"}
	}
	user, password, err := fleet.ParseCredentials(payload)
	if err != nil {
		return nil, badCredentials()
	}
	return &Credentials{Username: user, Password: password}, nil
}

func badCredentials() *fault {
	return &fault{outcome: fleet.OutcomeAuthFailed, detail: "not asked, for its secret does not hold user:password", certain: true}
}

// tickOnce lets one thing of a kind through per tick, however many proxies share its cause.
type tickOnce struct {
	mu   sync.Mutex
	tick time.Time
	seen map[string]bool
}

func (o *tickOnce) first(tick time.Time, what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !tick.Equal(o.tick) {
		o.tick, o.seen = tick, map[string]bool{}
	}
	first := !o.seen[what]
	o.seen[what] = true
	return first
}
