package fleet

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// These values are names of VMs that run: when one changes, every fleet loses its VMs.
func TestIdentitiesNeverChange(t *testing.T) {
	t.Parallel()
	created := time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.UTC)
	assert.Equal(t, "mlslkeioc333wyq5fxk3qgmg7g", UID("(default)", "proxies/us-east1-a", created))
	assert.Equal(t, "my-project--default-yykfcsu6lv3i", Owner("my-project", "(default)"))
	assert.Equal(t, "g2xizfymzpqqdgbl", SpecHash(whole()))
	assert.Equal(t, "mdqjo5qww2qi2qze", SpecHash(managed().Spec))
}

func TestUIDIsOfTheDocumentAndItsCreation(t *testing.T) {
	t.Parallel()
	created := time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
	uid := UID("(default)", "proxies/a", created)
	assert.Regexp(t, `^[a-z2-7]{26}$`, uid)
	assert.Equal(t, uid, UID("(default)", "proxies/a", created.In(time.FixedZone("x", 3600))), "the same moment elsewhere")
	assert.Equal(t, uid, UID("(default)", "proxies/a", created.Add(999)), "stores keep microseconds")
	for name, other := range map[string]string{
		"another document": UID("(default)", "proxies/b", created), "another database": UID("other", "proxies/a", created),
		"made again": UID("(default)", "proxies/a", created.Add(time.Microsecond)), "parts run together": UID("(default)proxies", "/a", created),
	} {
		assert.NotEqual(t, uid, other, name)
	}
}

func TestUIDsDoNotCollide(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 10_000 {
		seen[UID("(default)", fmt.Sprint("proxies/", i), time.Unix(0, 0))] = true
	}
	assert.Len(t, seen, 10_000)
}

func TestOwnerIsALabelThatNoOtherFleetHas(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	long := strings.Repeat("p", 50)
	seen := map[string]string{}
	for _, of := range [][2]string{
		{"my-project", "(default)"}, {"my-project", "default"}, {"my-project", "fleet-two"}, {"my-project--fleet", "two"}, {"my", "project--fleet-two"},
		{long, "a"}, {long, "b"}, {long + "x", "a"}, {"example.com:my-project", "(default)"}, {"example-com-my-project", "(default)"},
		{"MY-PROJECT", "(default)"}, {"", ""}, {"-", "-"}, {"日本", "(default)"}, {strings.Repeat("-", 80), "x"}, {strings.Repeat("a", 49) + "-b", "c"},
	} {
		owner := Owner(of[0], of[1])
		assert.Regexp(t, label, owner)
		assert.Empty(t, seen[owner], "%v has it, too", of)
		assert.Equal(t, owner, Owner(of[0], of[1]))
		seen[owner] = fmt.Sprint(of)
	}
	assert.True(t, strings.HasPrefix(Owner("my-project", "(default)"), "my-project--default-"), "people can read it")
}

func TestSpecHashChangesWithWhatNeedsANewVMAndNothingElse(t *testing.T) {
	t.Parallel()
	base := managed()
	hash := SpecHash(base.Spec)
	assert.Regexp(t, `^[a-z2-7]{16}$`, hash)
	place := func(edit func(*Placement)) func(*Proxy) {
		p := *base.Spec.Placement
		edit(&p)
		return placement(p)
	}
	for name, edit := range map[string]func(*Proxy){
		"provider":     provider("other"),
		"region":       place(func(p *Placement) { p.Region = "us-east2" }),
		"zone":         place(func(p *Placement) { p.Zone = "us-east1-c" }),
		"zones":        place(func(p *Placement) { p.Zones = []string{"us-east1-c"} }),
		"machine type": place(func(p *Placement) { p.MachineType = "e2-small" }),
		"spot":         place(func(p *Placement) { p.Spot = true }),
		"no placement": spec(func(s *Spec) { s.Placement = nil }),
		"inline":       cloudInit(CloudInit{Inline: "other"}),
		"secret":       cloudInit(CloudInit{SecretRef: &SecretRef{Name: "a"}}),
		"secret's key": cloudInit(CloudInit{SecretRef: &SecretRef{Name: "a", Key: "b"}}),
		"no cloudInit": spec(func(s *Spec) { s.CloudInit = nil }),
		"port":         port(8080),
	} {
		assert.NotEqual(t, hash, SpecHash(of(base, edit).Spec), name)
	}
	for name, edit := range map[string]func(*Proxy){
		"nothing":                   func(*Proxy) {},
		"labels":                    label("a", "b"),
		"health check":              health(HealthCheck{IntervalSeconds: 120}),
		"maxLeases":                 maxLeases(0),
		"paused":                    spec(func(s *Spec) { s.Paused = true }),
		"lifecycle":                 maxAge(time.Hour),
		"credentials":               credentials(SecretRef{Name: "proxy-auth"}),
		"the default port, spelled": port(DefaultPort),
		"the same zone as a list":   place(func(p *Placement) { p.Zone, p.Zones = "", []string{p.Zone} }),
	} {
		assert.Equal(t, hash, SpecHash(of(base, edit).Spec), name)
	}
	assert.NotEqual(t, SpecHash(of(base, cloudInit(CloudInit{SecretRef: &SecretRef{Name: "a"}})).Spec), SpecHash(of(base, cloudInit(CloudInit{Inline: "a"})).Spec))
}

func TestQuarantineKeysAreOneForAllSpellingsOfAHost(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"shop.example.com", "Shop.Example.COM", "shop.example.com."} {
		assert.Equal(t, "shop.example.com", QuarantineKey(host))
	}
}
