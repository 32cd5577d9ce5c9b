// Package secret turns references to secrets into their values.
package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Resolver finds the value of a secret: the payload of its latest version or, with a key, the member
// of that name of the JSON object which the payload then is. Values are returned byte for byte, so a
// line break at the end of a payload is part of it. Errors are ErrNotFound, ErrForbidden or
// ErrInvalid where one of these is the reason, and otherwise an outage; they name the secret and the
// key and never a value. A Resolver is safe for concurrent use.
type Resolver interface {
	Resolve(ctx context.Context, name, key string) (string, error)
}

var (
	// ErrNotFound: there is no such secret, none of its versions is enabled, or its object has no
	// such member.
	ErrNotFound = errors.New("secret not found")
	// ErrForbidden: we may not read it.
	ErrForbidden = errors.New("secret may not be read")
	// ErrInvalid: the reference can name no secret, or the payload is not what the key needs it to be.
	ErrInvalid = errors.New("invalid secret")
)

// validName is Secret Manager's own rule, but for the length. It also keeps a name inside its folder.
var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

const longestName = 255

func checkName(name string) error {
	if len(name) > longestName || !validName.MatchString(name) {
		return fmt.Errorf("secret %q: %w: letters, digits, - and _, at most 255", name, ErrInvalid)
	}
	return nil
}

// pick returns what key selects of a payload. What is wrong with a payload is said without the words
// of the JSON package, which quotes from it.
func pick(name, key string, payload []byte) (string, error) {
	if key == "" {
		return string(payload), nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil || members == nil {
		return "", fmt.Errorf("secret %s, key %q: %w: the payload is not a JSON object", name, key, ErrInvalid)
	}
	member, present := members[key]
	if !present {
		return "", fmt.Errorf("secret %s, key %q: %w: the payload has no such member", name, key, ErrNotFound)
	}
	var value *string
	if json.Unmarshal(member, &value) != nil || value == nil {
		return "", fmt.Errorf("secret %s, key %q: %w: the member is not a string", name, key, ErrInvalid)
	}
	return *value, nil
}
