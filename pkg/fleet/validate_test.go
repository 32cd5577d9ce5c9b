package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func paths(fs Faults) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Path)
	}
	return out
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	p := of(external(), name("Partner_1"), label("a b", "c d"), port(70000), maxLeases(1001), provider("gce-main"),
		placement(Placement{Zone: "X"}), cloudInit(CloudInit{}), health(HealthCheck{URL: "ftp://x", TimeoutSeconds: 61})).Proxy
	assert.Equal(t, []string{
		"spec.provider", "spec.placement", "spec.cloudInit", "spec.cloudInit", // R3, R5, R6, R7
		"metadata.name", `metadata.labels."a b"`, `metadata.labels."a b"`, "spec.placement.zone",
		"spec.healthCheck.url", "spec.healthCheck.timeoutSeconds", "spec.endpoint.port", "spec.healthCheck.timeoutSeconds", "spec.maxLeases",
	}, paths(Validate(p)))
}

func TestAFaultReadsAsPathValueAndWhatMustHold(t *testing.T) {
	t.Parallel()
	faults := Validate(of(managed(), port(70000), maxLeases(-1)).Proxy)
	require.Len(t, faults, 2)
	assert.EqualError(t, faults[0], "spec.endpoint.port: 70000: must be between 1 and 65535")
	assert.EqualError(t, faults, "spec.endpoint.port: 70000: must be between 1 and 65535\nspec.maxLeases: -1: must be between 0 and 1000")
	assert.EqualError(t, Fault{Path: "spec", Message: "must be set"}, "spec: must be set")
	assert.EqualError(t, Fault{Message: "is empty"}, "is empty")
	require.Error(t, faults.Err())
	assert.NoError(t, Faults{}.Err(), "no fault is no error")
}

func TestWhatDidNotDecodeIsReportedAndNotJudgedTwice(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		raw  map[string]any
		want []string
	}{
		"provider of a wrong type is not also missing":              {map[string]any{"mode": "Managed", "provider": 7}, []string{"spec.provider"}},
		"host of a wrong type is not also missing":                  {map[string]any{"mode": "External", "endpoint": map[string]any{"host": true}}, []string{"spec.endpoint.host"}},
		"an endpoint that is none hides what is in it":              {map[string]any{"mode": "External", "endpoint": "proxy.example.net"}, []string{"spec.endpoint"}},
		"mode of a wrong type is not also missing":                  {map[string]any{"mode": 1}, []string{"spec.mode"}},
		"an inline of a wrong type leaves the choice open":          {map[string]any{"mode": "Managed", "provider": "a", "cloudInit": map[string]any{"inline": 1}}, []string{"spec.cloudInit.inline"}},
		"a secretRef that is none still is one of the two":          {map[string]any{"mode": "Managed", "provider": "a", "cloudInit": map[string]any{"secretRef": "x"}}, []string{"spec.cloudInit.secretRef"}},
		"an interval of a wrong type says nothing of the timeout":   {map[string]any{"mode": "Managed", "provider": "a", "healthCheck": map[string]any{"intervalSeconds": "x", "timeoutSeconds": 60}}, []string{"spec.healthCheck.intervalSeconds"}},
		"the fault of one field hides no fault of its neighbour":    {map[string]any{"mode": "Managed", "provider": "a", "endpoint": map[string]any{"port": "80a", "host": "h"}}, []string{"spec.endpoint.port", "spec.endpoint.host"}},
		"a field is not inside another that its name begins like":   {map[string]any{"mode": "Managed", "provider": "a", "placement": map[string]any{"zone": 1, "zones": []any{"X"}}}, []string{"spec.placement.zone", "spec.placement.zones[0]"}},
		"an element of a list is not judged twice":                  {map[string]any{"mode": "Managed", "provider": "a", "placement": map[string]any{"zones": []any{7}}}, []string{"spec.placement.zones[0]"}},
		"an element of a list that is left out is judged":           {map[string]any{"mode": "Managed", "provider": "a", "placement": map[string]any{"zones": []any{nil}}}, []string{"spec.placement.zones[0]"}},
		"External with a broken placement still must not have one":  {map[string]any{"mode": "External", "endpoint": map[string]any{"host": "h"}, "placement": map[string]any{"zone": 1}}, []string{"spec.placement.zone", "spec.placement"}},
		"explicit zeros where a number must be at least 1 are seen": {map[string]any{"mode": "Managed", "provider": "a", "endpoint": map[string]any{"port": int64(0)}}, []string{"spec.endpoint.port"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Proxy{Name: "a"}
			p.Spec, p.Broken = Decode(row.raw)
			before := len(p.Broken)
			assert.Equal(t, row.want, paths(Validate(p)))
			assert.Len(t, p.Broken, before, "the document is left as it is")
		})
	}
}

func TestAFaultIsOfItsPathAndAllInside(t *testing.T) {
	t.Parallel()
	faults := Faults{{Path: "spec.placement"}, {Path: "spec.endpoint.port"}}
	for _, path := range []string{"spec.placement", "spec.placement.zone", "spec.placement[0]", "spec.endpoint.port"} {
		assert.True(t, faults.at(path), path)
	}
	for _, path := range []string{"spec", "spec.placements", "spec.endpoint", "spec.endpoint.host", "placement"} {
		assert.False(t, faults.at(path), path)
	}
}

func TestAnUpdateIsJudgedAgainstWhatWasAcceptedLast(t *testing.T) {
	t.Parallel()
	accepted := func(p Proxy, a Accepted) Proxy {
		p.Status.Accepted = &a
		return p
	}
	for name, row := range map[string]struct {
		old, next Proxy
		want      []string
	}{
		"the same document":          {managed(), managed(), nil},
		"a new mode":                 {managed(), external(), []string{"R1", "R2"}},
		"a new provider":             {managed(), of(managed(), provider("other")).Proxy, []string{"R2"}},
		"everything else may change": {managed(), of(managed(), port(1), maxLeases(0), placement(Placement{}), label("a", "b")).Proxy, nil},
		"a document edited behind the plane's back, then mended":    {accepted(external(), Accepted{Mode: Managed, Provider: "gce-main"}), managed(), nil},
		"a document edited behind the plane's back, left so":        {accepted(external(), Accepted{Mode: Managed, Provider: "gce-main"}), external(), []string{"R1", "R2"}},
		"the provider edited behind the plane's back, left so":      {accepted(managed(), Accepted{Mode: Managed, Provider: "other"}), managed(), []string{"R2"}},
		"never accepted, and of no mode: it may become anything":    {of(managed(), mode("managed")).Proxy, managed(), nil},
		"never accepted, and without provider: it may get one":      {of(managed(), provider("")).Proxy, managed(), nil},
		"never accepted, but good: mode is fixed all the same":      {external(), managed(), []string{"R1", "R2"}},
		"a mode that is none is one fault, not two":                 {managed(), of(managed(), mode("managed")).Proxy, []string{"mode"}},
		"nothing before: a new document":                            {Proxy{}, managed(), nil},
		"nothing before but a name, as when a status was cleared":   {Proxy{Name: "us-east1-a"}, external(), nil},
		"other faults of the new document are reported beside it":   {managed(), of(managed(), provider("other"), port(-1)).Proxy, []string{"R2", "spec.endpoint.port"}},
		"dropping the provider is both a change and against rule 3": {managed(), of(managed(), provider("")).Proxy, []string{"R2", "R3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range ValidateUpdate(row.old, row.next) {
				got = append(got, f.Rule)
			}
			assert.Equal(t, row.want, got)
		})
	}
}

func TestNoValueOfAFaultIsASecret(t *testing.T) {
	t.Parallel()
	const planted = "hunter2"
	userinfo := "crawler:" + planted + "@proxy.example.net"
	p := of(external(), host(userinfo), credentials(SecretRef{Name: "crawler:" + planted, Key: l256 + planted}),
		health(HealthCheck{URL: "https://" + userinfo, ExitAddressHeader: "Authorization: " + planted}), label("crawler:"+planted, userinfo)).Proxy
	p.Spec.CloudInit = &CloudInit{Inline: planted, SecretRef: &SecretRef{Name: planted + " "}}
	raw := map[string]any{
		"endpoint": map[string]any{
			"port": userinfo, "credentialsSecretRef": "crawler:" + planted, userinfo: 1, "host": []any{planted}, "password": planted,
		},
		"cloudInit":   map[string]any{"inline": []byte(planted), "secretRef": planted, "crawler:" + planted: 1},
		"healthCheck": map[string]any{"url": map[string]any{planted: planted}, "intervalSeconds": "http://" + userinfo},
		"provider":    []any{planted},
	}
	_, p.Broken = Decode(raw)
	faults := Validate(p)
	assert.GreaterOrEqual(t, len(faults), 14)
	assert.NotContains(t, faults.Error(), planted)
	_, faults = Decode(map[string]any{"endpoint": map[string]any{"credentialsSecretRef": planted}, "cloudInit": planted})
	assert.NotContains(t, faults.Error(), planted, "where a secret's name belongs, nothing is shown")
	_, faults = Decode(map[string]any{"endpoint": map[string]any{"port": "80a", "credentialsSecretRef": planted, "host": 7}})
	assert.ErrorContains(t, faults, `spec.endpoint.port: "80a": must be`, "beside it, values are shown")
}
