package examples

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/client/clienttest"
	"crawl.example.com/proxyfleet/pkg/fleet"
)

// module runs a piece of JavaScript beside the leases and stand-ins for what they need of Crawlee.
func module(t *testing.T, p *clienttest.Plane, env []string, source string) result {
	t.Helper()
	needs(t, "node", "node", "-e", "if (Number(process.versions.node.split('.')[0]) < 18) process.exit(1)")
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "script.mjs")
	head := fmt.Sprintf("import { Client, Leases, Refused } from %q;\nimport { Crawler, ProxyConfiguration } from %q;\nconst { URL_ } = process.env;\n",
		"file://"+filepath.Join(here, "crawlee/proxyfleet.mjs"), "file://"+filepath.Join(here, "testdata/crawlee_standin.mjs"))
	require.NoError(t, os.WriteFile(file, []byte(head+source), 0o600))
	return run(t, p, filepath.Dir(file), env, "node", file)
}

const crawl = `
const leases = new Leases({ request: { holder: 'crawlee', waitSeconds: 0 } });
const crawler = new Crawler({ ...leases.options(ProxyConfiguration), sessionPoolOptions: { maxPoolSize: Number(process.env.SESSIONS ?? 1), maxUsageCount: Number(process.env.USES ?? 50) } });
try {
  for (const page of await crawler.run(Array(12).fill(URL_))) console.log(page);
} finally {
  await leases.close();
}
`

func TestCrawleeSessionsHaveALeaseEach(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	r := module(t, p, []string{"URL_=" + site(t), "SESSIONS=3"}, crawl)
	require.Equal(t, strings.Repeat("200 page by a\n", 12), r.out, r.errors)
	require.Equal(t, 3, p.Calls("/v1/leases"))
	for _, body := range p.Reports("a") {
		require.JSONEq(t, `{"outcome":"ok"}`, body)
	}
	require.Zero(t, p.Live())
	require.Zero(t, p.Proxies["a"].Refused.Load(), "the password arrives byte for byte")
}

func TestCrawleeSessionsThatAreUsedUpGiveTheirLeaseBackWell(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	r := module(t, p, []string{"URL_=" + site(t), "USES=4"}, crawl)
	require.Equal(t, 0, r.code, r.errors)
	require.Equal(t, 3, p.Calls("/v1/leases"))
	for _, body := range p.Reports("a") {
		require.JSONEq(t, `{"outcome":"ok"}`, body)
	}
	require.Zero(t, p.Live())
}

func TestCrawleeLeavesProxiesThatFailOrAreBanned(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, report string
		fail         http.HandlerFunc
	}{
		{"it hangs up", `{"outcome":"error"}`, clienttest.Slam},
		{"it is banned", `{"outcome":"banned","target":"127.0.0.1"}`, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := clienttest.New(t, 50, "a", "b")
			p.Proxies["a"].FailWith(row.fail)
			r := module(t, p, []string{"URL_=" + site(t), "SESSIONS=4", "USES=2"}, crawl)
			require.Equal(t, strings.Repeat("200 page by b\n", 12), r.out, r.errors)
			require.NotEmpty(t, p.Reports("a"))
			for _, body := range p.Reports("a") {
				require.JSONEq(t, row.report, body)
			}
			require.Zero(t, p.Live())
			r.requireNoSecret(t)
		})
	}
}

func TestCrawleeRenewsByTheServersClockAndMovesOnWithADrain(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	p.Advance(-time.Hour)
	p.Before(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, ":renew") {
			p.Change("a", func(e *fleet.Entry) {
				e.DrainingBelow, e.DrainDeadline, e.Incarnation, e.Verdict.Incarnation = 2, p.Now().Add(time.Minute), 2, 2
			})
			p.Advance(6 * time.Second) // the function's copy of the catalog is out of date
		}
		next.ServeHTTP(w, r)
	})
	r := module(t, p, nil, `
let taken = 0;
const { acquire } = Client.prototype;
Client.prototype.acquire = function (request) {
  taken++;
  return acquire.call(this, request);
};
const leases = new Leases({ request: { ttlSeconds: 10 } });
while (taken < 2) {
  await leases.urlFor('s', { request: { url: 'http://shop.example/' } });
  await new Promise((r) => setTimeout(r, 20));
}
await leases.close();
console.log('exchanged');
`)
	require.Equal(t, "exchanged\n", r.out, r.errors)
	require.Equal(t, 1, p.Calls("renew"), "and the first one is left alone")
	require.Equal(t, 2, p.Calls("/v1/leases"))
}

func TestCrawleeRepeatsLostCallsAndSaysWhyThereIsNoLease(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	calls := 0
	p.Before(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch calls++; calls % 4 {
		case 1:
			next.ServeHTTP(httptest.NewRecorder(), r)
			clienttest.Slam(w, r)
		case 2:
			http.Error(w, "upstream", http.StatusBadGateway)
		case 3:
			w.Header().Set("Content-Length", "1000")
			_, _ = fmt.Fprint(w, `{"id":`)
		default:
			next.ServeHTTP(w, r)
		}
	})
	closed := httptest.NewServer(nil)
	closed.Close()
	r := module(t, p, []string{"PROXYFLEET_API_KEY=k3y", "URL_=" + closed.URL}, `
const client = new Client();
const lease = await client.acquire({});
console.log(lease.proxy.name);
await client.release(lease.id, 'ok');
try {
  await client.acquire({ region: 'none' });
} catch (error) {
  console.log(error.name, error.code, error.reason, error.retryAfter, error.ended);
}
try {
  await new Client({ url: URL_ }).release('secret-id');
} catch (error) {
  console.log(error.message);
}
`)
	require.Equal(t, "a\nRefused 503 FILTER_EMPTY 30 false\nthe lease function does not answer: ECONNREFUSED\n", r.out, r.errors)
	require.Zero(t, p.Live())
}

func TestCrawleeItself(t *testing.T) {
	t.Parallel()
	needs(t, "Crawlee", "node", "-e", "require('@crawlee/http')")
	p := clienttest.New(t, 50, "a", "b", "c")
	p.Proxies["a"].FailWith(clienttest.Slam)
	r := module(t, p, []string{"URL_=" + site(t, "b"), "CRAWLEE_PERSIST_STORAGE=false", "CRAWLEE_LOG_LEVEL=ERROR"}, `
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const { HttpCrawler, ProxyConfiguration: Real } = require('@crawlee/http');
const leases = new Leases({ request: { holder: 'crawlee' } });
const crawler = new HttpCrawler({
  ...leases.options(Real),
  maxConcurrency: 4, maxRequestRetries: 50, maxSessionRotations: 50, additionalMimeTypes: ['text/plain'],
  async requestHandler({ body }) { console.log(body.toString().trim()); },
});
await crawler.run(Array.from({ length: 10 }, (_, i) => URL_ + '/?page=' + i));
await leases.close();
process.exit(0);
`)
	require.Equal(t, strings.Repeat("page by c\n", 10), r.out, r.errors)
	require.Zero(t, p.Live())
	for _, body := range p.Reports("b") {
		require.JSONEq(t, `{"outcome":"banned","target":"127.0.0.1"}`, body)
	}
	require.Zero(t, p.Proxies["c"].Refused.Load())
}
