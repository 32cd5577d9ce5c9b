package providertest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

func incompleteListIsNotSilence(r *rig) {
	r.need(r.cloud.Faults.Hide != nil, "Faults.Hide")
	req := r.request()
	r.create(req)
	r.awaitListed(r.owner, req.Name)
	end := r.cloud.Faults.Hide(r.T, req.Zone)
	seen, err := r.cloud.Provider.ListByTag(r.Context(), r.owner)
	require.ErrorIs(r, err, provider.ErrIncomplete)
	assert.Equal(r, provider.ErrTransient, provider.ClassOf(err))
	assert.LessOrEqual(r, len(seen), 1)
	end()
	r.awaitListed(r.owner, req.Name)
}

func refusedCreateHasItsClass(r *rig) {
	r.need(r.cloud.Faults.RefuseCreate != nil, "Faults.RefuseCreate")
	for _, class := range []error{provider.ErrQuotaExceeded, provider.ErrTransient, provider.ErrPermanent} {
		req := r.request()
		r.cloud.Faults.RefuseCreate(r.T, class)
		_, err := r.cloud.Provider.Create(r.Context(), req)
		require.Error(r, err)
		assert.Equal(r, class, provider.ClassOf(err), "%v", err)
		require.ErrorIs(r, err, class)
		assert.NotErrorIs(r, err, context.Canceled)
		for range 3 {
			r.cloud.Step()
		}
		_, err = r.cloud.Provider.Get(r.Context(), req.Ref())
		require.ErrorIs(r, err, provider.ErrNotFound, "a refused create makes nothing")
		r.same(req, r.create(req))
		r.awaitState(req.Ref(), provider.StateProvisioning, provider.StateRunning)
	}
}

func stockOutNamesTheZone(r *rig) {
	r.need(r.cloud.Faults.StockOut != nil, "Faults.StockOut")
	req := r.request()
	r.cloud.Faults.StockOut(r.T, req.Zone)
	created, err := r.cloud.Provider.Create(r.Context(), req)
	if err == nil {
		failure := provider.LaunchFailure(r.awaitGone(created.Ref()))
		require.NotNil(r, failure, "get says why it never came")
		err = failure
	}
	assert.Equal(r, provider.ErrQuotaExceeded, provider.ClassOf(err), "%v", err)
	zone, ok := provider.StockOutZone(err)
	assert.True(r, ok, "%v", err)
	assert.Equal(r, req.Zone, zone)
	r.awaitListed(r.owner)
}

func failedLaunchIsTold(r *rig) {
	r.need(r.cloud.Faults.FailLaunch != nil, "Faults.FailLaunch")
	req := r.request()
	r.cloud.Faults.FailLaunch(r.T)
	created := r.create(req)
	r.same(req, created)
	err := r.awaitGone(created.Ref())
	assert.Equal(r, provider.ErrNotFound, provider.ClassOf(err))
	failure := provider.LaunchFailure(err)
	require.NotNil(r, failure, "%v", err)
	assert.Equal(r, provider.ErrQuotaExceeded, provider.ClassOf(failure))
	assert.NotEmpty(r, failure.Reason, "the cloud's own code")
	_, stockOut := provider.StockOutZone(failure)
	assert.False(r, stockOut, "quota is no stock-out")
	r.awaitListed(r.owner)
	require.NoError(r, r.cloud.Provider.Delete(r.Context(), created.Ref()))
}

func lostReplyThenRetryMakesOne(r *rig) {
	r.need(r.cloud.Faults.LoseReply != nil, "Faults.LoseReply")
	req := r.request()
	r.cloud.Faults.LoseReply(r.T)
	if _, err := r.cloud.Provider.Create(r.Context(), req); err != nil {
		assert.Equal(r, provider.ErrTransient, provider.ClassOf(err), "%v", err)
	}
	r.same(req, r.create(req))
	r.awaitState(req.Ref(), provider.StateRunning)
	r.awaitListed(r.owner, req.Name)
}

func outageIsNotAbsence(r *rig) {
	r.need(r.cloud.Faults.Outage != nil, "Faults.Outage")
	req := r.request()
	r.create(req)
	r.awaitState(req.Ref(), provider.StateRunning)
	end := r.cloud.Faults.Outage(r.T)
	_, createErr := r.cloud.Provider.Create(r.Context(), req)
	_, getErr := r.cloud.Provider.Get(r.Context(), req.Ref())
	_, byNameErr := r.cloud.Provider.Get(r.Context(), provider.Ref{Name: req.Name})
	deleteErr := r.cloud.Provider.Delete(r.Context(), req.Ref())
	_, listErr := r.cloud.Provider.ListByTag(r.Context(), r.owner)
	for verb, err := range map[string]error{"create": createErr, "get": getErr, "get by name": byNameErr, "delete": deleteErr, "list": listErr} {
		require.Error(r, err, verb)
		assert.Equal(r, provider.ErrTransient, provider.ClassOf(err), "%s: %v", verb, err)
		assert.NotErrorIs(r, err, provider.ErrNotFound, verb)
	}
	end()
	r.same(req, r.awaitState(req.Ref(), provider.StateRunning))
}

func cancelledLeavesNothing(r *rig) {
	req, never := r.request(), r.request()
	r.create(req)
	r.awaitState(req.Ref(), provider.StateRunning)
	cancelled, cancel := context.WithCancel(r.Context())
	cancel()
	late, cancelLate := context.WithDeadline(r.Context(), time.Unix(0, 0))
	defer cancelLate()
	for _, ctx := range []context.Context{cancelled, late} {
		_, createErr := r.cloud.Provider.Create(ctx, never)
		_, getErr := r.cloud.Provider.Get(ctx, req.Ref())
		deleteErr := r.cloud.Provider.Delete(ctx, req.Ref())
		_, listErr := r.cloud.Provider.ListByTag(ctx, r.owner)
		for verb, err := range map[string]error{"create": createErr, "get": getErr, "delete": deleteErr, "list": listErr} {
			assert.Equal(r, ctx.Err(), err, "%s returns the context's error unchanged", verb)
		}
	}
	for range 3 {
		r.cloud.Step()
	}
	_, err := r.cloud.Provider.Get(r.Context(), never.Ref())
	require.ErrorIs(r, err, provider.ErrNotFound)
	r.awaitState(req.Ref(), provider.StateRunning)
	r.awaitListed(r.owner, req.Name)
}

func cancelledOnItsWayIsPickedUp(r *rig) {
	r.need(r.cloud.Faults.Stall != nil, "Faults.Stall")
	req, never := r.request(), r.request()
	end := r.cloud.Faults.Stall(r.T)
	for verb, call := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { _, err := r.cloud.Provider.Create(ctx, req); return err },
		"get":    func(ctx context.Context) error { _, err := r.cloud.Provider.Get(ctx, req.Ref()); return err },
		"delete": func(ctx context.Context) error { return r.cloud.Provider.Delete(ctx, never.Ref()) },
		"list":   func(ctx context.Context) error { _, err := r.cloud.Provider.ListByTag(ctx, r.owner); return err },
	} {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		assert.Equal(r, context.DeadlineExceeded, call(ctx), "%s returns the context's error unchanged", verb)
		cancel()
	}
	end()
	r.same(req, r.create(req))
	r.awaitState(req.Ref(), provider.StateRunning)
	r.awaitListed(r.owner, req.Name)
}
