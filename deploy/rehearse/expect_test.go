package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"crawl.example.com/proxyfleet/deploy/rehearse/standin"
	"crawl.example.com/proxyfleet/pkg/store/firestore"
)

// The names that a deploy with the default settings gives.
const (
	runPlace     = "run/projects/" + project + "/locations/" + region + "/services/proxyfleet-"
	pubsubPlace  = "pubsub/projects/" + project + "/"
	lastDatabase = "firestore/projects/" + project + "/databases/(default)"
)

func url(function string) string {
	return "https://proxyfleet-" + function + "-" + number + "." + region + ".run.app"
}

func email(account string) string {
	return "proxyfleet-" + account + "@" + project + ".iam.gserviceaccount.com"
}

// dig walks down objects and lists.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// faults compares what a deploy left with what it should leave.
func faults(state standin.State) []string {
	var out []string
	check := func(what string, want, got any) {
		if fmt.Sprint(want) != fmt.Sprint(got) {
			out = append(out, fmt.Sprintf("%s: want %v, got %v", what, want, got))
		}
	}
	res := state.Resources

	push := res[pubsubPlace+"subscriptions/proxyfleet-push"]
	check("push endpoint", url("health")+"/", dig(push, "pushConfig", "pushEndpoint"))
	check("push account", email("push"), dig(push, "pushConfig", "oidcToken", "serviceAccountEmail"))
	check("push audience", url("health"), dig(push, "pushConfig", "oidcToken", "audience"))
	check("push topic", "projects/"+project+"/topics/proxyfleet-probes", dig(push, "topic"))
	check("ack deadline", 120, dig(push, "ackDeadlineSeconds"))
	check("retries from", "10s", dig(push, "retryPolicy", "minimumBackoff"))
	check("retries to", "60s", dig(push, "retryPolicy", "maximumBackoff"))
	check("dead-letter topic", "projects/"+project+"/topics/proxyfleet-probes-dead", dig(push, "deadLetterPolicy", "deadLetterTopic"))
	check("delivery attempts", 5, dig(push, "deadLetterPolicy", "maxDeliveryAttempts"))
	check("push never expires", map[string]any{}, dig(push, "expirationPolicy"))
	dead := res[pubsubPlace+"subscriptions/proxyfleet-probes-dead"]
	check("dead letters are kept", "projects/"+project+"/topics/proxyfleet-probes-dead", dig(dead, "topic"))
	check("dead letters never expire", map[string]any{}, dig(dead, "expirationPolicy"))

	job := res["cloudscheduler/projects/"+project+"/locations/"+region+"/jobs/proxyfleet-tick"]
	check("tick", "* * * * *", dig(job, "schedule"))
	check("tick address", url("reconcile")+"/", dig(job, "httpTarget", "uri"))
	check("tick method", "POST", dig(job, "httpTarget", "httpMethod"))
	check("tick account", email("tick"), dig(job, "httpTarget", "oidcToken", "serviceAccountEmail"))
	check("tick audience", url("reconcile"), dig(job, "httpTarget", "oidcToken", "audience"))
	check("tick deadline", "165s", dig(job, "attemptDeadline"))

	for _, f := range []string{"reconcile", "health", "lease"} {
		s := res[runPlace+f]
		check(f+" runs as", email(f), dig(s, "spec", "template", "spec", "serviceAccountName"))
		check(f+" image by digest", true, strings.Contains(fmt.Sprint(dig(s, "spec", "template", "spec", "containers", 0, "image")), "/proxyfleet/"+f+"@sha256:"))
		check(f+" traffic goes to the newest", dig(s, "status", "latestReadyRevisionName"), dig(s, "status", "traffic", 0, "revisionName"))
		check(f+" traffic", "100 true", fmt.Sprint(dig(s, "status", "traffic", 0, "percent"), " ", dig(s, "spec", "traffic", 0, "latestRevision")))
		check(f+" side-car", true, strings.Contains(fmt.Sprint(dig(s, "spec", "template", "spec", "containers", 1, "image")), "cloud-run-gmp-sidecar"))
	}
	check("providers file", "proxyfleet-providers", dig(res[runPlace+"reconcile"], "spec", "template", "spec", "volumes", 0, "secret", "secretName"))

	wall := res["compute/projects/"+project+"/global/firewalls/proxyfleet-proxies"]
	check("firewall", "[0.0.0.0/0] [proxyfleet-proxy] tcp [3128]", fmt.Sprint(dig(wall, "sourceRanges"), " ", dig(wall, "targetTags"), " ", dig(wall, "allowed", 0, "IPProtocol"), " ", dig(wall, "allowed", 0, "ports")))
	check("documents are protected", "DELETE_PROTECTION_ENABLED", dig(res[lastDatabase], "deleteProtectionState"))
	out = append(out, indexFaults(state)...)
	return append(out, roleFaults(state)...)
}

// indexFaults compares with what the store's queries need, both ways.
func indexFaults(state standin.State) []string {
	var want, got []string
	for _, i := range firestore.Indexes() {
		want = append(want, i.Collection+" index "+strings.Join(append(slices.Clone(i.Fields), "__name__"), ","))
	}
	for _, f := range firestore.TTLs() {
		want = append(want, f.Collection+" ttl "+f.Field)
	}
	for _, f := range firestore.Exemptions() {
		want = append(want, f.Collection+" exempt "+f.Field)
	}
	for key, o := range state.Resources {
		m := regexp.MustCompile(`^` + regexp.QuoteMeta(lastDatabase) + `/collectionGroups/([^/]+)/(indexes|fields)/(.+)$`).FindStringSubmatch(key)
		switch {
		case m == nil:
		case m[2] == "indexes":
			var fields []string
			for i := range o["fields"].([]any) {
				fields = append(fields, fmt.Sprint(dig(o, "fields", i, "fieldPath")))
			}
			got = append(got, m[1]+" index "+strings.Join(fields, ","))
		default:
			if o["ttlConfig"] != nil {
				got = append(got, m[1]+" ttl "+m[3])
			}
			if dig(o, "indexConfig", "usesAncestorConfig") == nil {
				got = append(got, m[1]+" exempt "+m[3])
			}
		}
	}
	return differences("index", want, got)
}

// grant is one line of deploy/roles.txt.
type grant struct{ account, on, role, only, when string }

func grants() []grant {
	data, err := os.ReadFile("../roles.txt")
	if err != nil {
		panic(err)
	}
	var out []grant
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 5 && !strings.HasPrefix(line, "#") {
			out = append(out, grant{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	return out
}

// roleFaults compares all policies with deploy/roles.txt, both ways.
func roleFaults(state standin.State) []string {
	conditions := map[string]string{
		"-":           "",
		"database":    `resource.name=="projects/` + project + `/databases/(default)"`,
		"credentials": `resource.name.startsWith("projects/` + number + `/secrets/proxy-auth")`,
		"cloud-init":  `resource.name.startsWith("projects/` + number + `/secrets/proxy-cloud-init")`,
	}
	want := []string{"cloudresourcemanager/projects/" + project + " roles/owner user:owner@example.com "}
	for _, g := range grants() {
		if g.when == "apikeys" || g.when == "source" || g.account == "crawlers" {
			continue
		}
		member := "serviceAccount:" + email(g.account)
		if g.account == "pubsub-agent" {
			member = "serviceAccount:service-" + number + "@gcp-sa-pubsub.iam.gserviceaccount.com"
		}
		role := strings.Replace(g.role, "@vms", "projects/"+project+"/roles/proxyfleetVms", 1)
		want = append(want, strings.Join([]string{policyKey(g.on), role, member, conditions[g.only]}, " "))
	}
	var got, public []string
	for key, policy := range state.Policies {
		bindings, _ := policy["bindings"].([]any)
		for _, b := range bindings {
			members, _ := dig(b, "members").([]any)
			for _, m := range members {
				condition, _ := dig(b, "condition", "expression").(string)
				got = append(got, strings.Join([]string{key, fmt.Sprint(dig(b, "role")), fmt.Sprint(m), condition}, " "))
				if strings.HasPrefix(fmt.Sprint(m), "all") {
					public = append(public, "public: "+key+" "+fmt.Sprint(m))
				}
			}
		}
	}
	return append(differences("role", want, got), public...)
}

// policyKey is where the stand-in keeps the policy of a resource of roles.txt.
func policyKey(on string) string {
	kind, name, _ := strings.Cut(on, ":")
	topics := map[string]string{"probes": "proxyfleet-probes", "dead": "proxyfleet-probes-dead"}
	return map[string]string{
		"project":      "cloudresourcemanager/projects/" + project,
		"topic":        pubsubPlace + "topics/" + topics[name],
		"subscription": pubsubPlace + "subscriptions/proxyfleet-" + name,
		"secret":       "secretmanager/projects/" + project + "/secrets/proxyfleet-" + name,
		"account":      "iam/projects/" + project + "/serviceAccounts/" + email(name),
		"service":      runPlace + name,
		"repository":   "artifactregistry/projects/" + project + "/locations/" + region + "/repositories/proxyfleet",
		"bucket":       "storage/b/" + project + "-proxyfleet-build",
	}[kind]
}

func differences(kind string, want, got []string) []string {
	var out []string
	for _, w := range want {
		if !slices.Contains(got, w) {
			out = append(out, kind+" missing: "+w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			out = append(out, kind+" too many: "+g)
		}
	}
	return out
}
