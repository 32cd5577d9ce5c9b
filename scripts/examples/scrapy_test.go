package examples

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/client/clienttest"
)

// scrapyScript runs a piece of Python beside the middleware and stand-ins for what it needs of Scrapy.
func scrapyScript(t *testing.T, p *clienttest.Plane, env []string, source string) result {
	t.Helper()
	needs(t, "python3", "python3", "--version")
	file := filepath.Join(t.TempDir(), "script.py")
	head := "import asyncio, sys\nfrom scrapy_standin import *\nimport scrapy_middleware\nfrom scrapy_middleware import LeaseMiddleware\n"
	require.NoError(t, os.WriteFile(file, []byte(head+source), 0o600))
	return run(t, p, filepath.Dir(file), append(env, "PYTHONPATH="+paths(t, "python", "testdata")), "python3", file)
}

func paths(t *testing.T, dirs ...string) string {
	t.Helper()
	for i := range dirs {
		abs, err := filepath.Abs(dirs[i])
		require.NoError(t, err)
		dirs[i] = abs
	}
	if old := os.Getenv("PYTHONPATH"); old != "" {
		dirs = append(dirs, old)
	}
	return strings.Join(dirs, string(os.PathListSeparator))
}

func TestScrapyRequestsToOneHostShareALeaseAndItGoesBackAtTheEnd(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	url := site(t)
	r := scrapyScript(t, p, []string{"URL=" + url}, `
import os
async def main():
    crawler = Crawler(PROXYFLEET_REQUEST={"holder": "scrapy"})
    middleware = LeaseMiddleware.from_crawler(crawler)
    answers = await asyncio.gather(*(fetch(middleware, Request(os.environ["URL"])) for _ in range(20)))
    print({(a.status, a.body.strip()) for a in answers})
    own = Request(os.environ["URL"])
    own.meta["proxy"] = "http://mine:1"
    assert await middleware.process_request(own) is None
    print(own.meta, own.headers)
    await close(crawler)
asyncio.run(main())
`)
	require.Equal(t, "{(200, 'page by a')}\n{'proxy': 'http://mine:1'} {}\n", r.out, r.errors)
	require.Equal(t, 1, p.Calls("/v1/leases"))
	require.Equal(t, []string{`{"outcome": "ok", "target": "127.0.0.1"}`}, p.Reports("a"))
	require.Zero(t, p.Live())
	require.Zero(t, p.Proxies["a"].Refused.Load(), "the password arrives byte for byte")
}

func TestScrapyLeavesProxiesThatFailOrAreBanned(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, outcome string
		fail          http.HandlerFunc
	}{
		{"it hangs up", "error", clienttest.Slam},
		{"it is banned", "banned", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }},
		{"it does not take its credentials", "error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := clienttest.New(t, 50, "a", "b")
			p.Proxies["a"].FailWith(row.fail)
			r := scrapyScript(t, p, []string{"URL=" + site(t)}, `
import os
async def main():
    for _ in range(12):
        crawler = Crawler()
        middleware = LeaseMiddleware.from_crawler(crawler)
        answer = await fetch(middleware, Request(os.environ["URL"]))
        assert answer.body == "page by b\n", answer.body
        await close(crawler)
asyncio.run(main())
`)
			require.Equal(t, 0, r.code, r.errors)
			require.NotEmpty(t, p.Reports("a"), "twelve draws out of two")
			for _, body := range p.Reports("a") {
				require.Equal(t, fmt.Sprintf(`{"outcome": %q, "target": "127.0.0.1"}`, row.outcome), body)
			}
			require.Zero(t, p.Live())
		})
	}
}

func TestScrapyComesBackToAProxyThatFailedRatherThanGiveUp(t *testing.T) {
	t.Parallel()
	p := clienttest.New(t, 5, "a")
	failures := 0
	p.Proxies["a"].FailWith(func(w http.ResponseWriter, _ *http.Request) {
		if failures++; failures == 1 {
			clienttest.Slam(w, nil)
			return
		}
		_, _ = fmt.Fprint(w, "better now")
	})
	r := scrapyScript(t, p, []string{"URL=" + site(t)}, `
import os
async def main():
    crawler = Crawler(PROXYFLEET_REQUEST={"waitSeconds": 0})
    middleware = LeaseMiddleware.from_crawler(crawler)
    print((await fetch(middleware, Request(os.environ["URL"]))).body)
    await close(crawler)
asyncio.run(main())
`)
	require.Equal(t, "better now\n", r.out, r.errors)
	require.Zero(t, p.Live())
}

func TestScrapyGivesUpARequestThatGetsNoProxy(t *testing.T) {
	t.Parallel()
	r := scrapyScript(t, clienttest.New(t, 5), nil, `
async def main():
    crawler = Crawler(PROXYFLEET_REQUEST={"waitSeconds": 0})
    try:
        await fetch(LeaseMiddleware.from_crawler(crawler), Request("http://shop.example/"))
    except IgnoreRequest as ignored:
        print(ignored)
asyncio.run(main())
`)
	require.Equal(t, "no proxy to lease for shop.example: NO_PROXIES: there are no proxies yet\n", r.out, r.errors)
}

func TestScrapyItself(t *testing.T) {
	t.Parallel()
	needs(t, "Scrapy", "python3", "-c", "import scrapy.crawler")
	p := clienttest.New(t, 50, "a", "b", "c")
	p.Proxies["a"].FailWith(clienttest.Slam)
	url := site(t, "b")
	spider, err := filepath.Abs("testdata/scrapy_spider.py")
	require.NoError(t, err)
	r := run(t, p, t.TempDir(), []string{"PYTHONPATH=" + paths(t, "python")}, "python3", spider, url, url, url, url, url, url, url, url)
	require.Equal(t, 0, r.code, r.errors)
	require.Equal(t, strings.Repeat("200 page by c\n", 8), r.out, r.errors)
	require.Zero(t, p.Live())
	require.Zero(t, p.Proxies["c"].Refused.Load())
	r.requireNoSecret(t)
}
