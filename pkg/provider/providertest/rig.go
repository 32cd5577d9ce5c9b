package providertest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// patience is how many steps the suite takes before it calls a wait in vain; see Cloud.Step.
const patience = 100

// rig is a cloud with the owner that one case works under.
type rig struct {
	*testing.T
	cloud Cloud
	owner string
}

func newRig(t *testing.T, c Cloud) *rig {
	require.NotNil(t, c.Provider, "Cloud.Provider is required")
	require.NotNil(t, c.Step, "Cloud.Step is required")
	return &rig{T: t, cloud: c, owner: newLabel("owner")}
}

// newLabel returns a label value that nobody else uses.
func newLabel(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:12]) }

// request returns a request for a new Proxy of the case's owner, and has what it may make removed at
// the end.
func (r *rig) request() provider.CreateRequest {
	return r.requestOf(r.owner)
}

func (r *rig) requestOf(owner string) provider.CreateRequest {
	req := r.cloud.Template
	req.Owner = owner
	req.UID = newLabel("uid")
	req.Incarnation = 1
	req.Name = provider.InstanceName(req.UID, req.Incarnation)
	req.SpecHash = newLabel("hash")
	req.ProxyName = newLabel("proxy")
	r.Cleanup(func() { r.remove(req.Ref()) })
	return req
}

// remove deletes what a case left behind and waits for it to be gone. The case's own context has
// ended by then.
func (r *rig) remove(ref provider.Ref) {
	for range patience {
		_, err := r.cloud.Provider.Get(context.Background(), ref)
		if errors.Is(err, provider.ErrNotFound) {
			return
		}
		_ = r.cloud.Provider.Delete(context.Background(), ref)
		r.cloud.Step()
	}
	r.Errorf("%s is left over in %s", ref.Name, ref.Zone)
}

func (r *rig) peer() provider.Provider {
	if r.cloud.Peer == nil {
		return r.cloud.Provider
	}
	return r.cloud.Peer(r.T)
}

func (r *rig) create(req provider.CreateRequest) provider.Instance {
	r.Helper()
	got, err := r.cloud.Provider.Create(r.Context(), req)
	require.NoError(r, err)
	return got
}

func (r *rig) list() []provider.Instance {
	r.Helper()
	return r.listOf(r.owner)
}

func (r *rig) listOf(owner string) []provider.Instance {
	r.Helper()
	got, err := r.cloud.Provider.ListByTag(r.Context(), owner)
	require.NoError(r, err)
	return got
}

// await takes steps until done holds.
func (r *rig) await(what string, done func() bool) {
	r.Helper()
	for range patience {
		if done() {
			return
		}
		r.cloud.Step()
	}
	require.FailNow(r, "not in time: "+what)
}

// awaitState waits until the instance is in one of the states, and returns it.
func (r *rig) awaitState(ref provider.Ref, states ...provider.State) provider.Instance {
	r.Helper()
	var got provider.Instance
	r.await(ref.Name+" "+string(states[0]), func() bool {
		var err error
		got, err = r.cloud.Provider.Get(r.Context(), ref)
		if errors.Is(err, provider.ErrNotFound) {
			return false
		}
		require.NoError(r, err)
		for _, s := range states {
			if got.State == s {
				return true
			}
		}
		return false
	})
	return got
}

// awaitGone waits until Get says that the instance is absent, and returns what it said.
func (r *rig) awaitGone(ref provider.Ref) error {
	r.Helper()
	var err error
	r.await(ref.Name+" gone", func() bool {
		_, err = r.cloud.Provider.Get(r.Context(), ref)
		return errors.Is(err, provider.ErrNotFound)
	})
	return err
}

// awaitListed waits until the listing shows exactly the named instances.
func (r *rig) awaitListed(owner string, want ...string) []provider.Instance {
	r.Helper()
	var got []provider.Instance
	r.await("listing of "+strings.Join(want, ", "), func() bool {
		got = r.listOf(owner)
		return sameNames(got, want)
	})
	return got
}

func sameNames(got []provider.Instance, want []string) bool {
	seen := map[string]int{}
	for _, i := range got {
		seen[i.Name]++
	}
	for _, name := range want {
		if seen[name] != 1 {
			return false
		}
	}
	return len(got) == len(want)
}

// need skips the case when the harness cannot do what it needs.
func (r *rig) need(can bool, what string) {
	r.Helper()
	if !can {
		r.Skipf("this harness has no %s", what)
	}
}
