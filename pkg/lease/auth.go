package lease

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Authenticator says who calls. An error is an *Error with Unauthenticated, PermissionDenied or
// StoreUnavailable.
type Authenticator interface {
	Authenticate(r *http.Request) (holder string, err error)
}

type holderKey struct{}

// holderOf is the default holder of what a request takes.
func holderOf(r *http.Request) string {
	holder, _ := r.Context().Value(holderKey{}).(string)
	return holder
}

func (s *Server) authenticated(h http.Handler) http.Handler {
	if s.Auth == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		holder, err := s.Auth.Authenticate(r)
		if err != nil {
			s.refuse(w, asError(err))
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), holderKey{}, holder)))
	})
}

// IAM trusts that Cloud Run has checked the caller's ID token, which it does unless the service was
// opened to everybody, and takes the e-mail address in it as holder. It verifies nothing: the
// signature is taken out of the token before we see it.
type IAM struct{}

// Authenticate implements Authenticator.
func (IAM) Authenticate(r *http.Request) (string, error) {
	token, ok := bearer(r, "X-Serverless-Authorization")
	if !ok {
		token, ok = bearer(r, "Authorization")
	}
	if !ok {
		return "", refuse(Unauthenticated, "send a Google ID token: Authorization: Bearer TOKEN")
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", refuse(Unauthenticated, "the token is not an ID token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", refuse(Unauthenticated, "the token is not an ID token")
	}
	var claims struct {
		Email   string `json:"email"`
		Subject string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return "", refuse(Unauthenticated, "the token is not an ID token")
	}
	if claims.Email == "" {
		return claims.Subject, nil
	}
	return claims.Email, nil
}

func bearer(r *http.Request, header string) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get(header), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// APIKeys knows callers by bearer keys, whose SHA-256 hashes a secret lists.
type APIKeys struct {
	Secrets Secrets
	Secret  string // its payload has a line "name: sha256-in-hex" per key; # begins a comment
}

// Authenticate implements Authenticator. Every key of the list is compared, in constant time, so that the
// time taken tells nothing.
func (a APIKeys) Authenticate(r *http.Request) (string, error) {
	token, ok := bearer(r, "Authorization")
	if !ok || token == "" {
		return "", refuse(Unauthenticated, "send your API key: Authorization: Bearer KEY")
	}
	payload, err := a.Secrets.Resolve(r.Context(), a.Secret, "")
	if err != nil {
		return "", &Error{Reason: StoreUnavailable, Message: "API keys cannot be checked at the moment", Err: err}
	}
	keys, err := ParseAPIKeys(payload)
	if err != nil {
		return "", &Error{Reason: StoreUnavailable, Message: "API keys cannot be checked at the moment", Err: err}
	}
	sum := sha256.Sum256([]byte(token))
	name := ""
	for _, k := range keys {
		if subtle.ConstantTimeCompare(sum[:], k.hash[:]) == 1 {
			name = k.name
		}
	}
	if name == "" {
		return "", refuse(Unauthenticated, "the API key is not known")
	}
	return name, nil
}

// APIKey is one line of the list.
type APIKey struct {
	name string
	hash [sha256.Size]byte
}

// ParseAPIKeys reads the list; the error names the line and never quotes it.
func ParseAPIKeys(payload string) ([]APIKey, error) {
	var keys []APIKey
	lines := bufio.NewScanner(strings.NewReader(payload))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, sum, ok := strings.Cut(line, ":")
		raw, err := hex.DecodeString(strings.TrimSpace(sum))
		if !ok || strings.TrimSpace(name) == "" || err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("API keys, line %d: must be `name: sha256`, the hash in 64 hexadecimal digits", n)
		}
		keys = append(keys, APIKey{strings.TrimSpace(name), [sha256.Size]byte(raw)})
	}
	if len(keys) == 0 {
		return nil, errors.New("API keys: the list is empty, so nobody could call")
	}
	return keys, lines.Err()
}
