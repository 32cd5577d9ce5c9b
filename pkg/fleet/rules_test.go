package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// row is what one rule lets pass and what it does not.
type row struct {
	pass, fail []change
	at         string // what follows the rule's path in the fault
	value      string // that the fault shows
}

func wantSevenRules() map[string]row {
	wasManaged, wasExternal := Accepted{Mode: Managed, Provider: "gce-main"}, Accepted{Mode: External}
	secret := &SecretRef{Name: "proxy-cloud-init"}
	return map[string]row{
		"R1": {
			pass: []change{of(managed()), after(wasManaged, of(managed())), after(wasExternal, of(external()))},
			fail: []change{after(Accepted{Mode: External, Provider: "gce-main"}, of(managed())), after(Accepted{Mode: Managed}, of(external()))},
		},
		"R2": {
			pass: []change{of(managed()), after(wasManaged, of(managed()))},
			fail: []change{after(wasManaged, of(managed(), provider("gce-two"))), after(Accepted{Mode: Managed, Provider: "GCE-MAIN"}, of(managed()))},
		},
		"R3": {
			pass: []change{of(managed()), of(external())},
			fail: []change{of(managed(), provider("")), of(external(), provider("gce-main"))},
		},
		"R4": {
			pass: []change{of(managed()), of(external())},
			fail: []change{of(external(), host("")), of(managed(), host("proxy.example.net"))},
		},
		"R5": {
			pass: []change{of(managed()), of(managed(), placement(Placement{}))},
			fail: []change{of(external(), placement(Placement{Region: "us-east1"})), of(external(), placement(Placement{}))},
		},
		"R6": {
			pass: []change{of(managed()), of(managed(), spec(func(s *Spec) { s.CloudInit = nil }))},
			fail: []change{of(external(), cloudInit(CloudInit{Inline: "#cloud-config\n"}))},
		},
		"R7": {
			pass: []change{of(managed(), cloudInit(CloudInit{Inline: "x"})), of(managed(), cloudInit(CloudInit{SecretRef: secret}))},
			fail: []change{of(managed(), cloudInit(CloudInit{})), of(managed(), cloudInit(CloudInit{Inline: "x", SecretRef: secret}))},
		},
	}
}

func wantFormats() map[string]row {
	return map[string]row{
		"name": {
			pass: each(managed, name, "a", "0", "us-east1-a", l63),
			fail: each(managed, name, "", l64, "A", "a.b", "a_b", "-a", "a-", "a b", "a\n", "ä", "a\xff", "../a", "a/b"),
		},
		"labels":    {pass: each(managed, labels, 0, 32), fail: each(managed, labels, 33)},
		"label-key": {pass: []change{of(managed(), label("a", "")), of(managed(), label("example.com/Pool_1", "")), of(managed(), label(l63, ""))}, at: ".-a", fail: []change{of(managed(), label("-a", ""))}},
		"label-value": {
			pass: []change{of(managed(), label("a", "")), of(managed(), label("a", "B_1.c-d")), of(managed(), label("a", l63))},
			at:   ".a", fail: []change{of(managed(), label("a", "b c")), of(managed(), label("a", l64)), of(managed(), label("a", "-b")), of(managed(), label("a", "\xff"))},
		},
		"mode":     {pass: []change{of(managed()), of(external())}, fail: each(managed, mode, "", "managed", "Both")},
		"provider": {pass: each(managed, provider, "gce-main", "GCE_main.2", l63), fail: each(managed, provider, "gce main", "gce\tmain", l64, "\xff")},
		"region":   {pass: each(managed, placement, Placement{}, Placement{Region: "us-east1"}), fail: each(managed, placement, Placement{Region: "US"}, Placement{Region: "1a"}), value: ""},
		"zone":     {pass: each(managed, placement, Placement{Zone: "us-east1-b"}), fail: each(managed, placement, Placement{Zone: "us east1-b"}, Placement{Zone: "-"})},
		"machineType": {
			pass: each(managed, placement, Placement{MachineType: "e2-micro"}),
			fail: each(managed, placement, Placement{MachineType: "e2_micro"}, Placement{MachineType: l64}),
		},
		"zone-count": {
			pass: each(managed, placement, Placement{}, Placement{Zones: zonesNamed(16)}),
			fail: each(managed, placement, Placement{Zones: zonesNamed(17)}),
		},
		"zones": {
			pass: each(managed, placement, Placement{Zones: []string{"us-east1-b", "us-east1-c"}}),
			at:   "[1]", fail: each(managed, placement, Placement{Zones: []string{"us-east1-b", "us-east1-C"}}),
		},
		"zone-region": {
			pass: each(managed, placement, Placement{Region: "us-east1", Zone: "us-east1-b"}, Placement{Zone: "us-east1-b"}, Placement{Zone: "b"}),
			fail: each(managed, placement, Placement{Region: "us-east1", Zone: "us-east4-b"}, Placement{Region: "us-east1", Zone: "us-east11-b"}, Placement{Region: "us-east1", Zone: "us-east1"}),
		},
		"zones-region": {
			pass: each(managed, placement, Placement{Region: "us-east1", Zones: []string{"us-east1-b", "us-east1-c"}}, Placement{Zone: "us-east1-b", Zones: []string{"us-east1-b", "us-east1-c"}}),
			at:   "[1]", fail: each(managed, placement,
				Placement{Region: "us-east1", Zones: []string{"us-east1-b", "us-west1-a"}},
				Placement{Zone: "us-east1-b", Zones: []string{"us-east1-c", "us-west1-a"}},
				Placement{Zones: []string{"us-east1-c", "us-west1-a"}}),
		},
		"inline": {
			pass: each(managed, cloudInit, CloudInit{Inline: strings.Repeat("a", 262144)}),
			fail: each(managed, cloudInit, CloudInit{Inline: strings.Repeat("a", 262145)}),
		},
		"cloud-init-secret": {
			pass: each(managed, cloudInit, CloudInit{SecretRef: &SecretRef{Name: "Proxy_cloud-init1"}}, CloudInit{SecretRef: &SecretRef{Name: l255}}),
			fail: each(managed, cloudInit, CloudInit{SecretRef: &SecretRef{}}, CloudInit{SecretRef: &SecretRef{Name: "../etc"}}, CloudInit{SecretRef: &SecretRef{Name: l256}}),
		},
		"cloud-init-secret-key": {
			pass: each(managed, cloudInit, CloudInit{SecretRef: &SecretRef{Name: "a", Key: l255}}),
			fail: each(managed, cloudInit, CloudInit{SecretRef: &SecretRef{Name: "a", Key: l256}}),
		},
		"credentials-secret": {
			pass: each(managed, credentials, SecretRef{Name: "proxy-auth"}),
			fail: each(managed, credentials, SecretRef{}, SecretRef{Name: "crawler:hunter2"}, SecretRef{Name: "projects/p/secrets/s"}),
		},
		"credentials-secret-key": {
			pass: each(managed, credentials, SecretRef{Name: "a", Key: "basic"}),
			fail: each(managed, credentials, SecretRef{Name: "a", Key: l256}),
		},
		"host": {
			pass: each(external, host, "proxy.example.net", "Proxy.Example.NET", "proxy.example.net.", "localhost", "3com.example", "1.example", "192.0.2.1", "127.0.0.1", "2001:db8::1", "::1"),
			fail: each(external, host, "http://proxy.example.net", "proxy.example.net:3128", "[2001:db8::1]", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1", "192.0.2.256", "192.0.2", "1", "0x7f.0x1",
				"a..b", ".a", "-a.example", "a_b.example", "ä.example", "a b", ".", l64+".example", strings.Repeat("a.", 127)+"aa", "user:hunter2@proxy.example.net"),
		},
		"url": {
			pass: each(managed, health, HealthCheck{}, target("https://www.example.com/generate_204"), target("http://127.0.0.1:8080/x?y=z"), target("https://[2001:db8::1]:8443/"), target("HTTPS://www.example.com")),
			fail: each(managed, health, target("www.example.com"), target("ftp://www.example.com"), target("https://"), target("https:///x"), target("https:www.example.com"), target("https://user:hunter2@www.example.com"), target("https://www.example.com:0"),
				target("https://www.example.com:65536"), target("https://www.example.com:"), target("https://www.example.com:https"), target("https://a b/"), target("https://www.example.com/"+strings.Repeat("a", 2048)), target("https://192.0.2.256/"), target("\x00")),
		},
		"body-contains": {
			pass: each(managed, health, HealthCheck{BodyContains: strings.Repeat("a", 1024)}),
			fail: each(managed, health, HealthCheck{BodyContains: strings.Repeat("a", 1025)}),
		},
		"timeout-below-interval": {
			pass: each(managed, health, HealthCheck{TimeoutSeconds: 59}, HealthCheck{TimeoutSeconds: 60, IntervalSeconds: 61}),
			fail: each(managed, health, HealthCheck{TimeoutSeconds: 60}, HealthCheck{TimeoutSeconds: 60, IntervalSeconds: 60}), value: "60",
		},
		"on-blocked": {
			pass: each(managed, health, HealthCheck{OnBlocked: "Unhealthy"}, HealthCheck{OnBlocked: "Ignore"}),
			fail: each(managed, health, HealthCheck{OnBlocked: "ignore"}), value: `"ignore"`,
		},
		"exit-address-from": {
			pass: each(managed, health, HealthCheck{ExitAddressFrom: "header"}, HealthCheck{ExitAddressFrom: "body"}),
			fail: each(managed, health, HealthCheck{ExitAddressFrom: "cookie"}), value: `"cookie"`,
		},
		"exit-address-header": {
			pass: each(managed, health, HealthCheck{ExitAddressHeader: "X-Client-Address"}, HealthCheck{ExitAddressHeader: "x_client"}),
			fail: each(managed, health, HealthCheck{ExitAddressHeader: "X Client"}, HealthCheck{ExitAddressHeader: "X-Client: a"}, HealthCheck{ExitAddressHeader: "X-Client\r\nA"}),
		},
	}
}

func wantRanges() map[string]row {
	const hc = "spec.healthCheck."
	return map[string]row{
		"spec.endpoint.port":      {pass: each(managed, port, 0, 1, 65535), fail: each(managed, port, -1, 65536, 70000)},
		hc + "expectedStatus":     {pass: each(managed, health, HealthCheck{ExpectedStatus: 100}, HealthCheck{ExpectedStatus: 599}), fail: each(managed, health, HealthCheck{ExpectedStatus: 99}, HealthCheck{ExpectedStatus: 600})},
		hc + "intervalSeconds":    {pass: each(managed, health, HealthCheck{IntervalSeconds: 60}, HealthCheck{IntervalSeconds: 3600}), fail: each(managed, health, HealthCheck{IntervalSeconds: 59}, HealthCheck{IntervalSeconds: 3601}, HealthCheck{IntervalSeconds: -60})},
		hc + "timeoutSeconds":     {pass: each(managed, health, HealthCheck{TimeoutSeconds: 1}), fail: each(managed, health, HealthCheck{TimeoutSeconds: -1}, HealthCheck{TimeoutSeconds: 61, IntervalSeconds: 3600})},
		hc + "healthyThreshold":   {pass: each(managed, health, HealthCheck{HealthyThreshold: 100}), fail: each(managed, health, HealthCheck{HealthyThreshold: -1}, HealthCheck{HealthyThreshold: 101})},
		hc + "unhealthyThreshold": {pass: each(managed, health, HealthCheck{UnhealthyThreshold: 100}), fail: each(managed, health, HealthCheck{UnhealthyThreshold: -1}, HealthCheck{UnhealthyThreshold: 101})},
		"spec.maxLeases":          {pass: each(managed, maxLeases, 0, 5, 1000), fail: each(managed, maxLeases, -1, 1001)},

		"spec.lifecycle.provisionTimeout":      {pass: each(managed, provisionTimeout, time.Second, day), fail: each(managed, provisionTimeout, -time.Minute, 0, day+1)},
		"spec.lifecycle.replaceUnhealthyAfter": {pass: each(managed, replaceUnhealthyAfter, 0, 30*day), fail: each(managed, replaceUnhealthyAfter, -1, 30*day+1)},
		"spec.lifecycle.maxAge":                {pass: each(managed, maxAge, 0, 365*day), fail: each(managed, maxAge, -1, 365*day+1)},
		"spec.lifecycle.drainTimeout":          {pass: each(managed, drainTimeout, 0, day), fail: each(managed, drainTimeout, -time.Second, day+1)},
	}
}

func wantRows() map[string]row {
	out := wantSevenRules()
	for _, more := range []map[string]row{wantFormats(), wantRanges()} {
		for id, r := range more {
			out[id] = r
		}
	}
	return out
}

func TestEveryRuleHasARowThatPassesAndOneThatFails(t *testing.T) {
	t.Parallel()
	want := wantRows()
	var ids []string
	for _, r := range rules() {
		assert.NotContains(t, ids, r.id, "an id names one rule")
		ids = append(ids, r.id)
		assert.NotEmpty(t, want[r.id].pass, "%s has no row that passes", r.id)
		assert.NotEmpty(t, want[r.id].fail, "%s has no row that fails", r.id)
		assert.NotEmpty(t, r.path)
		assert.True(t, strings.HasPrefix(r.message, "must "), r.message)
	}
	for id := range want {
		assert.Contains(t, ids, id, "the test has a row for a rule that is not in the table")
	}
	assert.Equal(t, []string{"R1", "R2", "R3", "R4", "R5", "R6", "R7"}, ids[:7])
}

func TestEachRuleLetsPassWhatItShouldAndNamesWhatItShould(t *testing.T) {
	t.Parallel()
	want := wantRows()
	for _, r := range rules() {
		t.Run(r.id, func(t *testing.T) {
			t.Parallel()
			for i, c := range want[r.id].pass {
				assert.Empty(t, validate(c), "row %d must pass", i)
			}
			for i, c := range want[r.id].fail {
				var found Faults
				for _, f := range validate(c) {
					if f.Rule == r.id {
						found = append(found, f)
					}
				}
				require.Len(t, found, 1, "row %d must fail", i)
				assert.Equal(t, r.path+want[r.id].at, found[0].Path)
				assert.Equal(t, r.message, found[0].Message)
				if value := want[r.id].value; value != "" {
					assert.Equal(t, value, found[0].Value)
				}
			}
		})
	}
}
