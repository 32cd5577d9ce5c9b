package secret

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	secretmanager "cloud.google.com/go/secretmanager/apiv1"
	"cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// accessTimeout bounds one access with the retries of its client.
const accessTimeout = 10 * time.Second

// Manager reads secrets from Secret Manager. Its client is opened with the first call; a failure to
// open it fails that call, and the next one tries again.
type Manager struct {
	project string
	opts    []option.ClientOption

	mu     sync.Mutex
	client *secretmanager.Client
}

// NewManager returns the resolver of a project's secrets. Options are those of the client.
func NewManager(project string, opts ...option.ClientOption) *Manager {
	return &Manager{project: project, opts: opts}
}

// Resolve accesses the latest version of the secret of that name.
func (m *Manager) Resolve(ctx context.Context, name, key string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	client, err := m.open(ctx)
	if err != nil {
		return "", fmt.Errorf("secret %s: open Secret Manager: %w", name, err)
	}
	bounded, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	version, err := client.AccessSecretVersion(bounded, &secretmanagerpb.AccessSecretVersionRequest{
		Name: "projects/" + m.project + "/secrets/" + name + "/versions/latest",
	})
	if ended := ctx.Err(); ended != nil {
		return "", ended
	}
	if err != nil {
		return "", explain(name, err)
	}
	payload := version.GetPayload()
	if sum := payload.DataCrc32C; sum != nil && *sum != int64(crc32.Checksum(payload.GetData(), crc32.MakeTable(crc32.Castagnoli))) {
		return "", fmt.Errorf("secret %s: the payload was damaged on its way", name)
	}
	return pick(name, key, payload.GetData())
}

// explain gives a failed access its reason. A version that is disabled or destroyed is a failed
// precondition to the API; to us there is then no secret.
func explain(name string, err error) error {
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition:
		return fmt.Errorf("secret %s: %w: %w", name, ErrNotFound, err)
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("secret %s: %w: %w", name, ErrForbidden, err)
	case codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("secret %s: Secret Manager did not answer in %s", name, accessTimeout)
	}
	return fmt.Errorf("secret %s: %w", name, err)
}

func (m *Manager) open(ctx context.Context) (*secretmanager.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		return m.client, nil
	}
	// The client outlives the call that happens to be the first.
	client, err := secretmanager.NewClient(context.WithoutCancel(ctx), m.opts...)
	if err != nil {
		return nil, err
	}
	m.client = client
	return client, nil
}

// Close gives up the connection. Calls made later open a new one.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return nil
	}
	err := m.client.Close()
	m.client = nil
	if err != nil {
		return errors.Join(errors.New("close Secret Manager"), err)
	}
	return nil
}
