package lease

import (
	"context"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// credentials are what a proxy asks for.
type credentials struct{ user, password string }

// credentials resolves a reference; nil without one. The resolver caches, for five minutes at most,
// so that a rotated secret is seen. The error names the secret and never its value.
func (s *Service) credentials(ctx context.Context, ref *fleet.SecretRef) (*credentials, error) {
	if ref == nil {
		return nil, nil
	}
	payload, err := s.Secrets.Resolve(ctx, ref.Name, ref.Key)
	if err != nil {
		return nil, &Error{Reason: StoreUnavailable, Message: "the proxy's credentials cannot be read at the moment", Err: err}
	}
	user, password, err := fleet.ParseCredentials(payload)
	if err != nil {
		return nil, &Error{Reason: StoreUnavailable, Message: "the proxy's credentials are malformed: secret " + ref.Name, Err: err}
	}
	return &credentials{user, password}, nil
}

func endpoint(e fleet.Entry, c *credentials) *Endpoint {
	out := &Endpoint{Scheme: "http", Host: e.Host, Port: e.Port}
	if c != nil {
		out.Username, out.Password = c.user, c.password
	}
	out.URL = fleet.ProxyURL(e.Host, e.Port, out.Username, out.Password)
	return out
}
