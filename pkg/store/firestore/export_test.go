package firestore

import (
	"testing"

	"cloud.google.com/go/firestore"
	"github.com/stretchr/testify/require"
)

// SetByHand sets one field of a document, which need not exist, as somebody might in the console.
func SetByHand(t *testing.T, s *Store, collection, id string, path []string, value any) {
	t.Helper()
	doc := map[string]any{}
	inner := doc
	for _, name := range path[:len(path)-1] {
		next := map[string]any{}
		inner[name] = next
		inner = next
	}
	inner[path[len(path)-1]] = value
	ctx, cancel := bounded(t.Context())
	defer cancel()
	_, err := s.client.Collection(collection).Doc(id).Set(ctx, doc, firestore.Merge(firestore.FieldPath(path)))
	require.NoError(t, err)
}

// RemoveByHand removes a document, as somebody might in the console.
func RemoveByHand(t *testing.T, s *Store, collection, id string) {
	t.Helper()
	ctx, cancel := bounded(t.Context())
	defer cancel()
	_, err := s.client.Collection(collection).Doc(id).Delete(ctx)
	require.NoError(t, err)
}

// BanID is the id of the document that notes bans.
func BanID(proxy, target string) string { return banID(proxy, target) }

// The bounds of writes that go together.
const (
	AloneAtOnce  = aloneAtOnce
	MostTogether = mostTogether
	LeastLeft    = leastLeft
)

// Waiting is how many writes wait for others to end.
func Waiting(s *Store) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting)
}

// UnderWay is how many calls of writes have not ended.
func UnderWay(s *Store) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return s.writes.underWay
}
