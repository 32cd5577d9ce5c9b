package providertest

import (
	"errors"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

func createMakesWhatWasAskedFor(r *rig) {
	req := r.request()
	created := r.create(req)
	r.same(req, created)
	assert.Contains(r, []provider.State{provider.StateProvisioning, provider.StateRunning}, created.State)
	got := r.awaitState(created.Ref(), provider.StateProvisioning, provider.StateRunning)
	r.same(req, got)
	assert.False(r, got.CreateTime.IsZero(), "an instance knows when it was made")
	r.same(req, r.awaitListed(r.owner, req.Name)[0])
}

// same checks that got is the instance that req describes.
func (r *rig) same(req provider.CreateRequest, got provider.Instance) {
	r.Helper()
	assert.Equal(r, req.Name, got.Name)
	assert.Equal(r, req.Owner, got.Owner)
	assert.Equal(r, req.UID, got.UID)
	assert.Equal(r, req.Incarnation, got.Incarnation)
	assert.Equal(r, req.SpecHash, got.SpecHash)
	assert.Equal(r, req.Zone, got.Zone)
}

func createTwiceMakesOne(r *rig) {
	req := r.request()
	r.same(req, r.create(req))
	again, err := r.peer().Create(r.Context(), req)
	require.NoError(r, err)
	r.same(req, again)
	running := r.awaitState(req.Ref(), provider.StateRunning)
	later := r.create(req)
	r.same(req, later)
	assert.Equal(r, provider.StateRunning, later.State)
	assert.Equal(r, running.CreateTime, later.CreateTime, "it is the same instance still")
	r.awaitListed(r.owner, req.Name)
}

func concurrentCreatesMakeOne(r *rig) {
	req := r.request()
	const callers = 8
	got, errs := make([]provider.Instance, callers), make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		p := r.peer()
		wg.Go(func() { got[i], errs[i] = p.Create(r.Context(), req) })
	}
	wg.Wait()
	succeeded := 0
	for i, err := range errs {
		if err == nil {
			succeeded++
			r.same(req, got[i])
			continue
		}
		// A caller may be told to come back while another one's request is on its way.
		assert.Equal(r, provider.ErrTransient, provider.ClassOf(err), "%v", err)
	}
	assert.Positive(r, succeeded)
	r.same(req, r.create(req))
	r.awaitListed(r.owner, req.Name)
}

func createWithAnotherSpecConflicts(r *rig) {
	req := r.request()
	r.create(req)
	for _, row := range []struct {
		differs string
		change  func(*provider.CreateRequest)
	}{
		{"spec hash", func(c *provider.CreateRequest) { c.SpecHash = newLabel("hash") }},
		{"uid", func(c *provider.CreateRequest) { c.UID = newLabel("uid") }},
		{"incarnation", func(c *provider.CreateRequest) { c.Incarnation++ }},
	} {
		other := req
		row.change(&other)
		r.conflicts(other, row.differs)
	}
	r.same(req, r.awaitState(req.Ref(), provider.StateProvisioning, provider.StateRunning))
	r.awaitListed(r.owner, req.Name)
}

// conflicts checks that the name of req is refused because somebody has it.
func (r *rig) conflicts(req provider.CreateRequest, differs string) {
	r.Helper()
	_, err := r.cloud.Provider.Create(r.Context(), req)
	require.Error(r, err, "another %s under the same name", differs)
	assert.Equal(r, provider.ErrPermanent, provider.ClassOf(err), "%v", err)
	var e *provider.Error
	require.True(r, errors.As(err, &e), "%v", err)
	assert.Equal(r, provider.ReasonNameConflict, e.Reason)
}

func nameOfAnotherOwnerConflicts(r *rig) {
	theirs := r.requestOf(newLabel("owner"))
	r.create(theirs)
	ours := theirs
	ours.Owner = r.owner
	r.conflicts(ours, "owner")
	r.same(theirs, r.awaitState(theirs.Ref(), provider.StateRunning))
	r.awaitListed(theirs.Owner, theirs.Name)
	assert.Empty(r, r.list(), "what is another's never becomes ours")
}

func nextIncarnationIsAnother(r *rig) {
	first := r.request()
	next := r.request()
	next.UID, next.Incarnation = first.UID, 2
	next.Name = provider.InstanceName(next.UID, next.Incarnation)
	r.Cleanup(func() { r.remove(next.Ref()) })
	r.create(first)
	r.same(next, r.create(next))
	r.awaitListed(r.owner, first.Name, next.Name)
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), first.Ref()))
	r.awaitGone(first.Ref())
	r.same(next, r.awaitListed(r.owner, next.Name)[0])
}

func requestAgainstTheRules(r *rig) {
	for _, row := range []struct {
		wrong  string
		change func(*provider.CreateRequest)
	}{
		{"name", func(c *provider.CreateRequest) { c.Name = "No_Name" }},
		{"no owner", func(c *provider.CreateRequest) { c.Owner = "" }},
		{"uid", func(c *provider.CreateRequest) { c.UID = "No Label" }},
		{"spec hash", func(c *provider.CreateRequest) { c.SpecHash = "No Label" }},
		{"incarnation", func(c *provider.CreateRequest) { c.Incarnation = 0 }},
	} {
		req := r.request()
		row.change(&req)
		_, err := r.cloud.Provider.Create(r.Context(), req)
		require.Error(r, err, row.wrong)
		assert.Equal(r, provider.ErrPermanent, provider.ClassOf(err), "%s: %v", row.wrong, err)
		_, err = r.cloud.Provider.Get(r.Context(), req.Ref())
		require.ErrorIs(r, err, provider.ErrNotFound, row.wrong)
	}
	r.awaitListed(r.owner)
}

func createAfterGoneMakesNew(r *rig) {
	req := r.request()
	created := r.create(req)
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), created.Ref()))
	r.awaitGone(req.Ref())
	r.same(req, r.create(req))
	r.awaitState(req.Ref(), provider.StateRunning)
	r.awaitListed(r.owner, req.Name)
}
