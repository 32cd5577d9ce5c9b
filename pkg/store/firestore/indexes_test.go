package firestore_test

import (
	"slices"
	"testing"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// query is what of a query decides about the index that it needs.
type query struct {
	collection string
	equal      []string // fields compared for being one of some values
	ordered    []string // fields compared by order or sorted by, but the document's id
}

func queryOf(q *firestorepb.StructuredQuery) query {
	out := query{collection: q.GetFrom()[0].GetCollectionId()}
	out.filter(q.GetWhere())
	for _, o := range q.GetOrderBy() {
		out.order(o.GetField().GetFieldPath())
	}
	return out
}

func (q *query) filter(f *firestorepb.StructuredQuery_Filter) {
	for _, part := range f.GetCompositeFilter().GetFilters() {
		q.filter(part)
	}
	if f := f.GetFieldFilter(); f != nil {
		switch f.GetOp() {
		case firestorepb.StructuredQuery_FieldFilter_EQUAL, firestorepb.StructuredQuery_FieldFilter_IN:
			q.equal = append(q.equal, f.GetField().GetFieldPath())
		default:
			q.order(f.GetField().GetFieldPath())
		}
	}
}

func (q *query) order(name string) {
	if name != "__name__" && !slices.Contains(q.ordered, name) {
		q.ordered = append(q.ordered, name)
	}
}

// index returns the composite index that serves the query, the zero Index where one of the automatic
// ones does. It fails when neither does.
func (q query) index(t *testing.T) firestore.Index {
	t.Helper()
	slices.Sort(q.equal)
	fields := append(slices.Clone(q.equal), q.ordered...)
	if len(fields) < 2 {
		for _, name := range fields {
			assert.NotContains(t, firestore.Exemptions(), firestore.Field{Collection: q.collection, Field: name}, "a query needs its index")
		}
		return firestore.Index{}
	}
	need := firestore.Index{Collection: q.collection, Fields: fields}
	assert.Contains(t, firestore.Indexes(), need, "the emulator does not ask for it, the cloud does")
	return need
}

// everyQueryHasItsIndex checks queries against what is declared, and what is declared against them.
func everyQueryHasItsIndex(t *testing.T, queries []query) {
	t.Helper()
	var used []firestore.Index
	for _, q := range queries {
		used = append(used, q.index(t))
	}
	require.NotEmpty(t, queries)
	for _, declared := range firestore.Indexes() {
		assert.Contains(t, used, declared, "no query needs it")
	}
}

func TestWhatIsDeclaredIsDeclaredOnce(t *testing.T) {
	t.Parallel()
	seen := map[firestore.Field]bool{}
	for _, f := range firestore.Exemptions() {
		assert.False(t, seen[f], "%+v", f)
		seen[f] = true
	}
	for _, f := range firestore.TTLs() {
		assert.True(t, seen[f], "%+v only grows: it must not be indexed", f)
	}
}
