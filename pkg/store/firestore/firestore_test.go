package firestore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"

	"crawl.example.com/proxyfleet/pkg/store/firestore"
	"crawl.example.com/proxyfleet/pkg/store/storetest"
)

// open connects to a project of the emulator that no other test uses.
func open(t *testing.T, opts ...option.ClientOption) *firestore.Store {
	t.Helper()
	if os.Getenv("FIRESTORE_EMULATOR_HOST") == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("FIRESTORE_EMULATOR_HOST must be set where CI is: run make test")
		}
		t.Skip("SKIPPED: no Firestore emulator; run make test, or set FIRESTORE_EMULATOR_HOST")
	}
	s, err := firestore.Open(t.Context(), fmt.Sprintf("test-%d", rand.Int64()), "(default)", opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		s := open(t)
		return storetest.Harness{Store: s, PutRaw: func(name string, doc map[string]any) {
			require.NoError(t, s.PutRaw(t.Context(), name, doc))
		}}
	})
}
