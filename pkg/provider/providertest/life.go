package providertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

func getAbsent(r *rig) {
	_, err := r.cloud.Provider.Get(r.Context(), r.request().Ref())
	require.ErrorIs(r, err, provider.ErrNotFound)
	assert.Nil(r, provider.LaunchFailure(err), "nothing was launched")
	req := r.request()
	_, err = r.cloud.Provider.Get(r.Context(), provider.Ref{Name: req.Name})
	require.ErrorIs(r, err, provider.ErrNotFound, "the zone is a hint and may be missing")
}

func becomesRunning(r *rig) {
	req := r.request()
	r.create(req)
	got := r.awaitState(req.Ref(), provider.StateRunning)
	assert.NotEmpty(r, got.Address)
	byName, err := r.cloud.Provider.Get(r.Context(), provider.Ref{Name: req.Name})
	require.NoError(r, err)
	assert.Equal(r, got.Address, byName.Address)
	listed := r.awaitListed(r.owner, req.Name)[0]
	assert.Equal(r, provider.StateRunning, listed.State)
	assert.Equal(r, got.Address, listed.Address)
}

func stoppedKeepsItsName(r *rig) {
	r.need(r.cloud.Faults.Stop != nil, "Faults.Stop")
	req := r.request()
	r.create(req)
	r.awaitState(req.Ref(), provider.StateRunning)
	r.cloud.Faults.Stop(r.T, req.Ref())
	r.same(req, r.awaitState(req.Ref(), provider.StateTerminated))
	r.same(req, r.awaitListed(r.owner, req.Name)[0])
	again := r.create(req)
	r.same(req, again)
	assert.Equal(r, provider.StateTerminated, again.State, "create does not start it again")
}

func vanishedIsAbsent(r *rig) {
	r.need(r.cloud.Faults.Vanish != nil, "Faults.Vanish")
	req := r.request()
	r.create(req)
	r.awaitState(req.Ref(), provider.StateRunning)
	r.cloud.Faults.Vanish(r.T, req.Ref())
	r.awaitGone(req.Ref())
	r.awaitListed(r.owner)
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), req.Ref()))
}

func deleteAbsent(r *rig) {
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), r.request().Ref()))
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), provider.Ref{Name: r.request().Name}))
}

func deleteRemoves(r *rig) {
	req, kept := r.request(), r.request()
	r.create(req)
	r.create(kept)
	r.awaitState(req.Ref(), provider.StateRunning)
	r.deleteTwice(req.Ref())
	r.same(kept, r.awaitState(kept.Ref(), provider.StateRunning))
	r.awaitListed(r.owner, kept.Name)
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), req.Ref()), "gone is success")
}

// deleteTwice deletes an instance, at once again, and waits for it to go without ever coming back.
func (r *rig) deleteTwice(ref provider.Ref) {
	r.Helper()
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), ref))
	require.NoError(r, r.peer().Delete(r.Context(), ref), "on its way out is success")
	r.awaitGone(ref)
	_, err := r.cloud.Provider.Get(r.Context(), provider.Ref{Name: ref.Name})
	require.ErrorIs(r, err, provider.ErrNotFound)
	assert.Nil(r, provider.LaunchFailure(err), "it was deleted, it did not fail")
}

func deleteOfProvisioning(r *rig) {
	req := r.request()
	created := r.create(req)
	r.deleteTwice(created.Ref())
	r.awaitListed(r.owner)
}

func deleteOfTerminated(r *rig) {
	r.need(r.cloud.Faults.Stop != nil, "Faults.Stop")
	req := r.request()
	r.create(req)
	r.awaitState(req.Ref(), provider.StateRunning)
	r.cloud.Faults.Stop(r.T, req.Ref())
	r.awaitState(req.Ref(), provider.StateTerminated)
	r.deleteTwice(req.Ref())
	r.awaitListed(r.owner)
}

func listIsOursOnly(r *rig) {
	assert.Empty(r, r.list())
	first, second := r.request(), r.request()
	other := r.requestOf(newLabel("owner"))
	longer := r.requestOf(r.owner + "x")
	for _, req := range []provider.CreateRequest{first, second, other, longer} {
		r.create(req)
	}
	for _, i := range r.awaitListed(r.owner, first.Name, second.Name) {
		assert.Equal(r, r.owner, i.Owner)
	}
	r.awaitListed(other.Owner, other.Name)
	assert.Empty(r, r.listOf(newLabel("owner")), "nobody's")
}

func listHasEveryPage(r *rig) {
	r.need(r.cloud.Many > 0, "number of instances that make several pages (Many)")
	names := make([]string, r.cloud.Many)
	for i := range names {
		req := r.request()
		r.create(req)
		names[i] = req.Name
	}
	r.awaitListed(r.owner, names...)
}
