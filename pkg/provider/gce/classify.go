package gce

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// verdict is what a rule concludes.
type verdict struct {
	class      error
	stockOut   bool // the zone has no room: another may have
	nextMinute bool // rate limits are refilled at the next full minute
	reason     string
}

// rule is one line of the classification table. A rule applies when all that it names is so; of a
// list, one is enough. Codes are canonical.
type rule struct {
	codes    []string // a code is one of these
	prefix   string   // a code begins with this
	part     string   // a code contains this
	http     []int    // the status is one of these
	from     int      // the status is this or above
	texts    []string // the message contains all of these, in lower case
	verbs    []verb   // the question was one of these
	waits    bool     // the cloud said how long to wait
	concerns verdict
}

var (
	transient = verdict{class: provider.ErrTransient}
	permanent = verdict{class: provider.ErrPermanent}
	quota     = verdict{class: provider.ErrQuotaExceeded}
	notFound  = verdict{class: provider.ErrNotFound}
	stockOut  = verdict{class: provider.ErrQuotaExceeded, stockOut: true}
	rateLimit = verdict{class: provider.ErrTransient, nextMinute: true}
	nameTaken = verdict{class: provider.ErrPermanent, reason: provider.ReasonNameConflict}
)

// table holds the rules in the order in which they are tried; the first that applies decides. What
// none knows is transient. The order matters in three places: a stock-out comes with status 503, so
// it stands before the rule for 5xx; a spent rate limit is called a quota by its message, so it
// stands before quotas; and 403 alone means a missing permission, so it stands after both.
var table = []rule{
	// No room in the zone.
	{part: "RESOURCEPOOLEXHAUSTED", concerns: stockOut},
	{codes: []string{"INSUFFICIENTCAPACITY", "STOCKOUT"}, concerns: stockOut},
	{texts: []string{"machine type", "does not exist in zone"}, concerns: stockOut},

	// Too many calls.
	{codes: []string{"CONCURRENTOPERATIONSQUOTAEXCEEDED", "RATELIMITEXCEEDED", "USERRATELIMITEXCEEDED", "RESOURCEOPERATIONRATEEXCEEDED"}, concerns: rateLimit},
	{texts: []string{"quota exceeded for quota metric", "per minute"}, concerns: rateLimit},

	// No room in the project or the subnet.
	{part: "IPSPACEEXHAUSTED", concerns: quota},
	{part: "QUOTA", concerns: quota},

	// Absent. A project that is not there must not make its instances look gone, and a create misses
	// what it refers to, never the instance itself.
	{codes: []string{"NOTFOUND", "RESOURCENOTFOUND"}, verbs: []verb{verbCreate, verbLaunch, verbList}, concerns: permanent},
	{http: []int{404}, verbs: []verb{verbCreate, verbLaunch, verbList}, concerns: permanent},
	{http: []int{404}, texts: []string{"the resource 'projects/", "/instances/", "was not found"}, concerns: notFound},
	{http: []int{404}, texts: []string{"the resource 'projects/", "/operations/", "was not found"}, concerns: notFound},
	{http: []int{404}, texts: []string{"the resource 'projects/", "was not found"}, concerns: permanent},
	{http: []int{404}, concerns: notFound},
	{codes: []string{"NOTFOUND", "RESOURCENOTFOUND"}, concerns: notFound},

	// In each other's way.
	{codes: []string{"ALREADYEXISTS", "RESOURCEALREADYEXISTS"}, concerns: nameTaken},
	{codes: []string{"RESOURCENOTREADY", "OPERATIONINPROGRESS"}, concerns: transient},
	{prefix: "RESOURCEINUSE", concerns: transient},
	{codes: []string{"CONDITIONNOTMET"}, texts: []string{"constraints/"}, concerns: permanent},
	{codes: []string{"CONDITIONNOTMET"}, concerns: transient},

	// Refused.
	{http: []int{403, 429}, waits: true, concerns: transient},
	{codes: []string{"ACCESSNOTCONFIGURED", "SERVICEDISABLED", "AUTHERROR", "CREDENTIALSMISSING"}, concerns: permanent},
	{prefix: "INVALID", concerns: permanent},
	{prefix: "RESERVATION", concerns: permanent},
	{codes: []string{"REQUIRED", "MISSINGREQUIREDFIELD", "FIELDSIZETOOLARGE", "BADREQUEST", "UNSUPPORTEDOPERATION"}, concerns: permanent},
	{codes: []string{"FORBIDDEN", "PERMISSIONSERROR", "IAMPERMISSIONDENIED", "INSUFFICIENTPERMISSIONS"}, concerns: permanent},

	// The cloud's own trouble, and whatever came without a code that we know.
	{codes: []string{"INTERNALERROR", "BACKENDERROR", "SERVICEUNAVAILABLE"}, concerns: transient},
	{http: []int{408, 409, 412, 429}, concerns: transient},
	{http: []int{400, 401, 403}, concerns: permanent},
	{from: 500, concerns: transient},
}

// classify is the one place where a signal becomes an error class. It is given the zone that was
// asked, for stock-outs, and the time, for rate limits.
func classify(s signal, zone string, now time.Time) *provider.Error {
	v, reason := judge(s)
	e := &provider.Error{
		Class: v.class, Op: string(s.verb), Name: s.name, Reason: reason, Zone: zone,
		StockOut: v.stockOut, RetryAfter: s.wait,
	}
	if v.reason != "" {
		e.Reason = v.reason
	}
	if v.nextMinute {
		e.RetryAfter = max(e.RetryAfter, now.Truncate(time.Minute).Add(time.Minute).Sub(now))
	}
	return e
}

// judge returns the verdict of the first rule that applies, and the cloud's code that it applied to.
func judge(s signal) (verdict, string) {
	for _, r := range table {
		if code, applies := r.match(s); applies {
			return r.concerns, code
		}
	}
	return transient, firstCode(s)
}

func (r rule) match(s signal) (code string, applies bool) {
	switch {
	case r.http != nil && !slices.Contains(r.http, s.http),
		s.http < r.from,
		r.verbs != nil && !slices.Contains(r.verbs, s.verb),
		r.waits && s.wait == 0:
		return "", false
	}
	message := strings.ToLower(s.message)
	for _, text := range r.texts {
		if !strings.Contains(message, text) {
			return "", false
		}
	}
	if r.codes == nil && r.prefix == "" && r.part == "" {
		return firstCode(s), true
	}
	for _, code := range s.codes {
		if r.matchCode(canonical(code)) {
			return code, true
		}
	}
	return "", false
}

func (r rule) matchCode(code string) bool {
	return slices.Contains(r.codes, code) ||
		r.prefix != "" && strings.HasPrefix(code, r.prefix) ||
		r.part != "" && strings.Contains(code, r.part)
}

// firstCode names a signal where no particular code decided.
func firstCode(s signal) string {
	switch {
	case len(s.codes) > 0:
		return s.codes[0]
	case s.http > 0:
		return "HTTP " + http.StatusText(s.http)
	}
	return ""
}
