package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// orphanGrace is how long an instance without a document is left alone: longer than its leases may
// last, and than any run that might know better takes.
const orphanGrace = 15 * time.Minute

// orphan is an instance of ours that no document can have asked for.
type orphan struct {
	provider string
	provider.Instance
}

func (o orphan) key() string { return o.provider + "/" + o.Name }

// findOrphans returns the listed instances with our owner tag whose uid is no document's, by name.
// An instance that a document names is none, whatever its labels say. An instance that two providers
// list, because they share an account, is returned once.
func findOrphans(listings map[string]listing, owner string, uids, named map[string]bool) []orphan {
	var out []orphan
	seen := map[string]bool{}
	for name, l := range listings {
		for _, i := range l.instances {
			if i.Owner == owner && !uids[i.UID] && !named[i.Name] {
				out = append(out, orphan{name, i})
			}
		}
	}
	slices.SortFunc(out, func(a, b orphan) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.provider, b.provider)) })
	return slices.DeleteFunc(out, func(o orphan) bool {
		twice := seen[o.Name]
		seen[o.Name] = true
		return twice
	})
}

// sweep decides about orphans: which are due, since each was seen as one by an earlier run and its
// grace is over; what the next run is to know of; and whether there are suspiciously many, in which
// case none is due. before is what the last run knew; an orphan that a listing may have missed is
// not forgotten.
func sweep(orphans []orphan, before map[string]time.Time, instances int, incomplete map[string]bool, now time.Time) (due []orphan, known map[string]time.Time, stop bool) {
	known = map[string]time.Time{}
	for _, o := range orphans {
		since, earlier := before[o.key()]
		if !earlier {
			since = now
		}
		known[o.key()] = since
		age := now.Sub(o.CreateTime)
		gone := o.State == provider.StateStopping || o.State == provider.StateUnknown
		if now.Sub(since) >= orphanGrace && age >= orphanGrace && !gone { // so an earlier run has seen it, too
			due = append(due, o)
		}
	}
	for key, since := range before {
		if _, seen := known[key]; !seen && incomplete[providerOfKey(key)] {
			known[key] = since
		}
	}
	if frozen(len(orphans), instances) {
		return nil, known, true
	}
	return due, known, false
}

func providerOfKey(key string) string { return key[:max(0, strings.LastIndexByte(key, '/'))] }
