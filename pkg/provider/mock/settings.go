package mock

import (
	"maps"
	"slices"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Settings is the mock block of a providers file entry. Every field may be left out: then instances
// run at once, nothing fails and anybody may use the proxies.
type Settings struct {
	ProvisionDelay time.Duration `yaml:"provisionDelay"` // from create to running
	StopDelay      time.Duration `yaml:"stopDelay"`      // from delete, or an end from outside, to terminated
	PurgeDelay     time.Duration `yaml:"purgeDelay"`     // from terminated to gone, once deleted

	BasicAuth string `yaml:"basicAuth"` // user:password that the proxies ask for; the password may hold any byte

	FailNextCreates int           `yaml:"failNextCreates"` // so many creates are refused
	FailWith        string        `yaml:"failWith"`        // why: transient (default), quota, stockOut, permanent
	LoseResponses   int           `yaml:"loseResponses"`   // so many creates work while their answer is lost
	ListLag         int           `yaml:"listLag"`         // a listing shows what was so many listings ago
	Capacity        int           `yaml:"capacity"`        // instances at once, of all owners; 0 means no end
	CreateLimit     int           `yaml:"createLimit"`     // creates in a CreateWindow; 0 means no end
	CreateWindow    time.Duration `yaml:"createWindow"`    // 1m
	StockOut        []string      `yaml:"stockOut"`        // zones that have no machines left
}

// defaultWindow is CreateWindow when that is left out: clouds count by the minute.
const defaultWindow = time.Minute

// causes are the values of Settings.FailWith.
var causes = map[string]provider.Error{
	"":          {Class: provider.ErrTransient, Reason: reasonUnavailable},
	"transient": {Class: provider.ErrTransient, Reason: reasonUnavailable},
	"quota":     {Class: provider.ErrQuotaExceeded, Reason: reasonQuota},
	"stockOut":  {Class: provider.ErrQuotaExceeded, Reason: reasonStockOut, StockOut: true},
	"permanent": {Class: provider.ErrPermanent, Reason: reasonRefused},
}

// settingFault is one thing that is wrong with settings.
type settingFault struct{ key, message string }

// check returns all that is wrong. Messages do not quote values: one is a password.
func (s Settings) check() []settingFault {
	var found []settingFault
	for _, number := range []struct {
		key   string
		value int
	}{
		{"failNextCreates", s.FailNextCreates}, {"loseResponses", s.LoseResponses}, {"listLag", s.ListLag},
		{"capacity", s.Capacity}, {"createLimit", s.CreateLimit},
	} {
		if number.value < 0 {
			found = append(found, settingFault{number.key, "must be 0 or more"})
		}
	}
	for _, delay := range []struct {
		key   string
		value time.Duration
	}{{"provisionDelay", s.ProvisionDelay}, {"stopDelay", s.StopDelay}, {"purgeDelay", s.PurgeDelay}, {"createWindow", s.CreateWindow}} {
		if delay.value < 0 {
			found = append(found, settingFault{delay.key, "must be 0 or more"})
		}
	}
	if _, known := causes[s.FailWith]; !known {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(causes)), func(name string) bool { return name == "" })
		found = append(found, settingFault{"failWith", "must be one of " + strings.Join(names, ", ")})
	}
	if user, _, ok := strings.Cut(s.BasicAuth, ":"); s.BasicAuth != "" && (!ok || user == "") {
		found = append(found, settingFault{"basicAuth", "must be user:password"})
	}
	return found
}
