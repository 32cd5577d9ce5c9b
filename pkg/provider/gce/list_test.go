package gce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	emulator "crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/pkg/provider"
)

// insertForeign makes an instance as somebody else would.
func insertForeign(t *testing.T, c *cloud, name string, labels map[string]string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"name": name, "machineType": "zones/" + zone + "/machineTypes/e2-micro", "labels": labels,
		"disks":             []any{map[string]any{"boot": true, "initializeParams": map[string]any{"sourceImage": "projects/p/global/images/i"}}},
		"networkInterfaces": []any{map[string]any{"network": "global/networks/default"}},
	})
	require.NoError(t, err)
	resp, err := http.Post(fmt.Sprintf("%s/compute/v1/projects/%s/zones/%s/instances", c.URL(), project, zone), "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestListReadsAllPagesOfAllZones(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{PageSize: 2}, Settings{})
	want := map[string]string{}
	for i := range 7 {
		req := request(fmt.Sprintf("proxy-%d", i))
		req.Zone = []string{zone, "us-east1-c", "us-east1-d"}[i%3]
		_, err := c.provider.Create(t.Context(), req)
		require.NoError(t, err)
		want[req.Name] = req.Zone
	}
	insertForeign(t, c, "proxy-9", map[string]string{labelOwner: "somebody-else"})
	insertForeign(t, c, "web-server", nil)
	before := c.count(emulator.AggregatedList)
	got, err := c.provider.ListByTag(t.Context(), owner)
	require.NoError(t, err)
	seen := map[string]string{}
	for _, i := range got {
		seen[i.Name] = i.Zone
		assert.Equal(t, owner, i.Owner)
	}
	assert.Equal(t, want, seen)
	assert.Len(t, got, 7)
	assert.Equal(t, 4, c.count(emulator.AggregatedList)-before, "one call a page")
}

func TestAListingWithASilentZoneIsIncomplete(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	for name, where := range map[string]string{"proxy-a": zone, "proxy-b": "us-east1-c"} {
		req := request(name)
		req.Zone = where
		_, err := c.provider.Create(t.Context(), req)
		require.NoError(t, err)
	}
	c.SetUnreachable("us-east1-c", true)
	got, err := c.provider.ListByTag(t.Context(), owner)
	require.ErrorIs(t, err, provider.ErrIncomplete)
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
	var incomplete *provider.IncompleteError
	require.ErrorAs(t, err, &incomplete)
	assert.Equal(t, []string{"us-east1-c"}, incomplete.Unreachable)
	require.Len(t, got, 1)
	assert.Equal(t, "proxy-a", got[0].Name)
}

func TestAListingThatBreaksOffIsIncomplete(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"items": {"zones/us-east1-b": {"instances": [{"name": "proxy-a", "status": "RUNNING"}]}}, "nextPageToken": "2"}`,
		"2": ``,
	}
	p := paged(t, pages)
	got, err := p.ListByTag(t.Context(), owner)
	require.ErrorIs(t, err, provider.ErrIncomplete)
	assert.ErrorContains(t, err, "Service Unavailable")
	assert.Len(t, got, 1)
}

// paged returns a provider whose aggregated lists are these pages, by page token; an empty one is 503.
func paged(t *testing.T, pages map[string]string) *Provider {
	t.Helper()
	calls := 0
	return served(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		require.Less(t, calls, 50, "it goes on for ever")
		page := pages[r.URL.Query().Get("pageToken")]
		if page == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, page)
	})
}

func TestEveryDoubtMakesAListingIncomplete(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		pages       map[string]string
		unreachable []string // none means complete
	}{
		"nothing anywhere": {map[string]string{"": `{"items": {"zones/us-east1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": "No results."}}}}`}, nil},
		"no zones at all":  {map[string]string{"": `{}`}, nil},
		"a zone in the list of the unreachable": {map[string]string{"": `{"unreachables": ["zones/us-central1-b"]}`},
			[]string{"us-central1-b"}},
		"a zone with a warning": {map[string]string{"": `{"items": {"zones/us-central1-b": {"warning": {"code": "UNREACHABLE", "message": "Scope is unreachable."}}}}`},
			[]string{"us-central1-b"}},
		"a warning that we do not know": {map[string]string{"": `{"items": {"zones/us-central1-b": {"warning": {"code": "LIST_OVERHEAD_QUOTA_EXCEED"}}}}`},
			[]string{"us-central1-b"}},
		"a warning that names no zone": {map[string]string{"": `{"warning": {"code": "UNREACHABLE", "message": "Some scopes were unreachable."}}`},
			[]string{"unreachable"}},
		"an early page without instances": {map[string]string{
			"":  `{"unreachables": ["zones/us-central1-b"], "nextPageToken": "2"}`,
			"2": `{"items": {"zones/us-east1-b": {"instances": []}}}`},
			[]string{"us-central1-b"}},
		"a later page without instances": {map[string]string{
			"":  `{"items": {"zones/us-east1-b": {}}, "nextPageToken": "2"}`,
			"2": `{"unreachables": ["zones/us-central1-b"], "nextPageToken": "3"}`,
			"3": `{"items": {}}`},
			[]string{"us-central1-b"}},
	}
	for promise, row := range rows {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			got, err := paged(t, row.pages).ListByTag(t.Context(), owner)
			assert.Empty(t, got)
			if row.unreachable == nil {
				assert.NoError(t, err)
				return
			}
			var incomplete *provider.IncompleteError
			require.ErrorAs(t, err, &incomplete)
			assert.Equal(t, row.unreachable, incomplete.Unreachable)
		})
	}
}

func TestAZoneOnTwoPagesIsMerged(t *testing.T) {
	t.Parallel()
	vm := func(name string) string { return fmt.Sprintf(`{"name": %q, "status": "RUNNING"}`, name) }
	got, err := paged(t, map[string]string{
		"":  `{"items": {"zones/us-east1-b": {"instances": [` + vm("proxy-a") + `,` + vm("proxy-b") + `]}}, "nextPageToken": "2"}`,
		"2": `{"items": {"zones/us-east1-b": {"instances": [` + vm("proxy-b") + `,` + vm("proxy-c") + `]}}}`,
	}).ListByTag(t.Context(), owner)
	require.NoError(t, err)
	assert.Len(t, got, 3)
}

func TestAPageThatRefersToItselfEnds(t *testing.T) {
	t.Parallel()
	_, err := paged(t, map[string]string{
		"": `{"nextPageToken": "2"}`, "2": `{"nextPageToken": "2"}`,
	}).ListByTag(t.Context(), owner)
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
}

func TestABriefOutageDoesNotCostTheListing(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	_, err := c.provider.Create(t.Context(), request("proxy-a"))
	require.NoError(t, err)
	before := c.count(emulator.AggregatedList)
	c.Inject(emulator.Fault{Method: emulator.AggregatedList, Times: 2, Status: 503, Reason: "backendError"})
	got, err := c.provider.ListByTag(t.Context(), owner)
	require.NoError(t, err)
	assert.Len(t, got, 1)
	assert.Equal(t, 3, c.count(emulator.AggregatedList)-before)

	before = c.count(emulator.AggregatedList)
	c.Inject(emulator.Fault{Method: emulator.AggregatedList, Status: 503, Reason: "backendError"})
	_, err = c.provider.ListByTag(t.Context(), owner)
	assert.Equal(t, provider.ErrTransient, provider.ClassOf(err))
	assert.Equal(t, 3, c.count(emulator.AggregatedList)-before, "a long one is for the caller")
}

func TestARateLimitIsNotHammered(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{PerMinute: 1}, Settings{})
	_, err := c.provider.ListByTag(t.Context(), owner)
	require.NoError(t, err)
	_, err = c.provider.ListByTag(t.Context(), owner)
	var e *provider.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, toNextMinute, e.RetryAfter)
	assert.Equal(t, 2, c.count(emulator.AggregatedList))
	c.Advance(toNextMinute)
	_, err = c.provider.ListByTag(t.Context(), owner)
	assert.NoError(t, err)
}

func TestATagThatIsNoLabelIsRefusedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	c := startCloud(t, emulator.Options{}, Settings{})
	for _, tag := range []string{"", `x" OR name="y`, "UPPER"} {
		_, err := c.provider.ListByTag(t.Context(), tag)
		assert.Equal(t, provider.ErrPermanent, provider.ClassOf(err), tag)
	}
	assert.Empty(t, c.Calls())
}
