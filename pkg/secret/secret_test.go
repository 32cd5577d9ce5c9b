package secret

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// planted must never be found in an error.
const planted = "hunter2-planted"

// payloads are what the resolvers under test hold.
var payloads = map[string]string{
	"plain":    "user:p:@/?#%é \"\x00\n",
	"empty":    "",
	"object":   `{"basic": "user:` + planted + `", "none": null, "number": 7, "": "nameless", "deep": {"a": "` + planted + `"}}`,
	"list":     `["` + planted + `"]`,
	"null":     `null`,
	"broken":   `{"basic": "` + planted,
	"trailing": `{"basic": "` + planted + `"} x`,
	"bare":     planted,
}

// promises are the same for every Resolver.
func promises(t *testing.T, r Resolver) {
	rows := []struct {
		promise, name, key, want string
		err                      error
	}{
		{"a payload is returned byte for byte", "plain", "", payloads["plain"], nil},
		{"an empty payload is one", "empty", "", "", nil},
		{"without a key an object is a payload like any other", "object", "", payloads["object"], nil},
		{"a key selects a member", "object", "basic", "user:" + planted, nil},
		{"an absent secret", "absent", "", "", ErrNotFound},
		{"an absent member", "object", "other", "", ErrNotFound},
		{"a member that is null", "object", "none", "", ErrInvalid},
		{"a member that is a number", "object", "number", "", ErrInvalid},
		{"a member that is an object", "object", "deep", "", ErrInvalid},
		{"a key into a list", "list", "basic", "", ErrInvalid},
		{"a key into null", "null", "basic", "", ErrInvalid},
		{"a key into broken JSON", "broken", "basic", "", ErrInvalid},
		{"a key into JSON and more", "trailing", "basic", "", ErrInvalid},
		{"a key into a bare word", "bare", "basic", "", ErrInvalid},
		{"a key into nothing", "empty", "basic", "", ErrInvalid},
		{"no name", "", "", "", ErrInvalid},
		{"a way out of the folder", "../plain", "", "", ErrInvalid},
		{"a path", "a/b", "", "", ErrInvalid},
	}
	for _, row := range rows {
		t.Run(row.promise, func(t *testing.T) {
			got, err := r.Resolve(t.Context(), row.name, row.key)
			assert.Equal(t, row.want, got)
			if row.err == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, row.err)
			assert.NotContains(t, err.Error(), planted)
			assert.Contains(t, err.Error(), row.name)
		})
	}
	t.Run("an ended context", func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.Resolve(ended, "plain", "")
		assert.ErrorIs(t, err, context.Canceled)
	})
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, payload := range payloads {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(payload), 0o600))
	}
	promises(t, NewDirectory(dir))

	d := NewDirectory(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("new"), 0o600))
	got, err := d.Resolve(t.Context(), "plain", "")
	require.NoError(t, err)
	assert.Equal(t, "new", got, "a replaced file counts at once")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	_, err = d.Resolve(t.Context(), "folder", "")
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrNotFound)
	if os.Geteuid() != 0 { // root may read everything
		require.NoError(t, os.Chmod(filepath.Join(dir, "plain"), 0))
		_, err = d.Resolve(t.Context(), "plain", "")
		assert.ErrorIs(t, err, ErrForbidden)
	}
}

// vault is a Secret Manager server.
type vault struct {
	secretmanagerpb.UnimplementedSecretManagerServiceServer
	mu     sync.Mutex
	fail   error
	sum    *int64
	asked  []string
	values map[string]string
}

func (v *vault) AccessSecretVersion(ctx context.Context, req *secretmanagerpb.AccessSecretVersionRequest) (*secretmanagerpb.AccessSecretVersionResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, req.GetName())
	if v.fail != nil {
		return nil, v.fail
	}
	for name, value := range v.values {
		if req.GetName() == "projects/crawl/secrets/"+name+"/versions/latest" {
			return &secretmanagerpb.AccessSecretVersionResponse{Payload: &secretmanagerpb.SecretPayload{Data: []byte(value), DataCrc32C: v.sum}}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "Secret [%s] not found or has no versions.", req.GetName())
}

func (v *vault) set(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
}

func startVault(t *testing.T) (*vault, *Manager) {
	t.Helper()
	v := &vault{values: payloads}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	secretmanagerpb.RegisterSecretManagerServiceServer(server, v)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	m := NewManager("crawl", option.WithEndpoint(l.Addr().String()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return v, m
}

func TestManager(t *testing.T) {
	t.Parallel()
	_, m := startVault(t)
	promises(t, m)
	require.NoError(t, m.Close())
	_, err := m.Resolve(t.Context(), "plain", "")
	assert.NoError(t, err, "a closed one opens again")
}

func TestManagerSaysWhyItCannot(t *testing.T) {
	t.Parallel()
	rows := map[codes.Code]error{
		codes.NotFound:           ErrNotFound,
		codes.FailedPrecondition: ErrNotFound,
		codes.PermissionDenied:   ErrForbidden,
		codes.Unauthenticated:    ErrForbidden,
	}
	v, m := startVault(t)
	for code, want := range rows {
		v.set(func() { v.fail = status.Error(code, "no") })
		_, err := m.Resolve(t.Context(), "plain", "")
		assert.ErrorIs(t, err, want, code)
	}
	v.set(func() { v.fail = status.Error(codes.Internal, "trouble") })
	_, err := m.Resolve(t.Context(), "plain", "")
	for _, reason := range []error{ErrNotFound, ErrForbidden, ErrInvalid} {
		assert.NotErrorIs(t, err, reason, "an outage says nothing about the secret")
	}
	v.set(func() { v.fail = status.Error(codes.DeadlineExceeded, "slow") })
	_, err = m.Resolve(t.Context(), "plain", "")
	assert.ErrorContains(t, err, "did not answer")
	assert.NotErrorIs(t, err, context.DeadlineExceeded)

	wrong := int64(7)
	v.set(func() { v.fail, v.sum = nil, &wrong })
	_, err = m.Resolve(t.Context(), "bare", "")
	require.ErrorContains(t, err, "damaged")
	assert.NotContains(t, err.Error(), planted)
}

func TestManagerOpensNothingBeforeItIsAsked(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/absent.json")
	m := NewManager("crawl")
	require.NoError(t, m.Close())
	for range 2 {
		_, err := m.Resolve(t.Context(), "plain", "")
		require.ErrorContains(t, err, "open Secret Manager")
	}
}
