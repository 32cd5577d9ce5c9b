package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// fake is a provider that knows only whether it was closed.
type fake struct {
	provider.Provider
	config provider.Config
	closed bool
}

func (f *fake) Close() error {
	f.closed = true
	return nil
}

// bench has constructors of two types and keeps what they built.
type bench struct{ built []*fake }

func (b *bench) constructors() map[string]provider.Constructor {
	return map[string]provider.Constructor{
		"mock": func(_ context.Context, c provider.Config) (provider.Provider, error) {
			var block struct {
				Delay string `yaml:"delay"`
			}
			if err := c.Decode(&block); err != nil {
				return nil, err
			}
			f := &fake{config: c}
			b.built = append(b.built, f)
			return f, nil
		},
		"gcp": func(ctx context.Context, c provider.Config) (provider.Provider, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, errors.Join(errors.New("project: must be set"), errors.New("image: must be a path"))
		},
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestEveryEntryIsBuiltUnderItsName(t *testing.T) {
	t.Parallel()
	var b bench
	configs, built, err := Load(t.Context(), write(t, "- {name: a, type: mock, maxInstances: 3}\n- {name: b, type: mock}\n"), b.constructors())
	require.NoError(t, err)
	require.Len(t, configs, 2)
	require.Len(t, built, 2)
	assert.Equal(t, 3, configs[0].MaxInstances)
	assert.Same(t, b.built[0], built["a"])
	assert.Same(t, b.built[1], built["b"])
	assert.Equal(t, "b", b.built[1].config.Name)
	assert.False(t, b.built[0].closed)

	again, err := Build(t.Context(), configs, b.constructors())
	require.NoError(t, err)
	assert.Len(t, again, 2)
}

func TestNoEntriesMakeNoProviders(t *testing.T) {
	t.Parallel()
	var b bench
	_, built, err := Load(t.Context(), write(t, "[]"), b.constructors())
	require.NoError(t, err)
	assert.Empty(t, built)
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	t.Parallel()
	var b bench
	path := write(t, `- name: a
  type: mock
- name: b
  type: gcp
  colour: red
- name: c
  type: aws
- name: a
  type: mock
  mock:
    dilay: 1s
- name: d
`)
	_, built, err := Load(t.Context(), path, b.constructors())
	require.EqualError(t, err, "providers file "+path+`: line 3: entry 2 "b": project: must be set
line 3: entry 2 "b": image: must be a path
line 5: entry 2 "b": colour: is not known; an entry has name, type, maxInstances and the block gcp
line 7: entry 3 "c": type: "aws" is not known; known are gcp, mock
line 8: entry 4 "a": name: "a" is the name of entry 1 "a" already; give each entry its own
line 11: entry 4 "a": mock.dilay: is not known; known here are delay
line 12: entry 5 "d": type: must be set`)
	assert.Nil(t, built)
	require.Len(t, b.built, 1)
	assert.True(t, b.built[0].closed, "what was built in vain is closed")
}

func TestFaultsOfEntriesMadeInCode(t *testing.T) {
	t.Parallel()
	var b bench
	built, err := Build(t.Context(), []provider.Config{{Name: "a", Type: "mock"}, {Name: "a", Type: "mock"}, {Name: "b", Type: "mokc"}}, b.constructors())
	require.EqualError(t, err, `provider "b": type: "mokc" is not known; known are gcp, mock`+"\n"+
		`provider "a": name: "a" is the name of provider "a" already; give each entry its own`)
	assert.Nil(t, built)
	for _, f := range b.built {
		assert.True(t, f.closed)
	}
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	_, _, err := Load(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestContextReachesTheConstructors(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var b bench
	_, err := Build(ctx, []provider.Config{{Name: "a", Type: "gcp"}}, b.constructors())
	require.EqualError(t, err, `provider "a": context canceled`)
}
