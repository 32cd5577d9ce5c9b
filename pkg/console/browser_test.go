package console

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// shown is a fleet in all states, on a real socket.
func shown(t *testing.T) (*rig, string) {
	t.Helper()
	r := newRig(t)
	r.run("")
	for i := range 6 {
		name := fmt.Sprintf("us-east1-%c", 'a'+i)
		r.add(name, map[string]string{"pool": "news", "country": "us", "tier": "residential-and-quite-long"}, func(s *fleet.Status) {
			s.AddEvent(now.Add(-time.Duration(i)*time.Hour), "Running", "the VM proxy-"+name+"-1 is up at 192.0.2.1 in us-east1-b")
		})
		for n := range i {
			r.lease(name, n, time.Hour)
		}
	}
	r.add("europe-west1-a-with-a-name-that-is-as-long-as-names-may-be-63-ok", map[string]string{"pool": "shops"}, func(s *fleet.Status) {
		sick(s)
		s.Health.Detail = "dial tcp [2001:db8:1234:5678:9abc:def0:1234:5678]:3128: connect: connection refused"
		s.AddEvent(now, "Unhealthy", s.Health.Detail)
		s.Instance = &fleet.Instance{Name: "proxy-europe-west1-a-1", Incarnation: 1, State: "Running", Zone: "europe-west1-b"}
		s.Next = &fleet.Instance{Name: "proxy-europe-west1-a-2", Incarnation: 2}
	})
	r.add("asia-east1-a", nil, func(s *fleet.Status) { *s = fleet.Status{} })
	r.add("asia-east1-b", nil, func(s *fleet.Status) {
		s.Conditions.Set(fleet.Condition{Type: fleet.ConditionAccepted, Reason: "Invalid", Message: "spec.mode: must not change: it was Managed"}, now)
	})
	for i := range 12 {
		var seen []probe
		for n := range i + 1 {
			p := probe{now.Add(time.Duration(n-20) * time.Minute), fleet.OutcomeOK, int64(40 + 30*(n%4))}
			if n == 3 {
				p.Outcome = fleet.OutcomeTimeout
			}
			seen = append(seen, p)
		}
		r.page.seen[fmt.Sprintf("us-east1-%c", 'a'+i)] = seen
	}
	server := httptest.NewServer(r.page)
	t.Cleanup(server.Close)
	return r, server.URL
}

// contrast finds texts that are hard to read: below 4.5 to 1, or 3 to 1 when large (WCAG 2, 1.4.3).
const contrast = `(() => {
  const rgba = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = ([r, g, b]) => [r, g, b].map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = e => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || ["SCRIPT", "STYLE"].includes(e.tagName)) continue;
    const s = getComputedStyle(e), a = light(rgba(s.color)), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(s.fontSize);
    if (ratio < (size >= 24 || size >= 18.66 && s.fontWeight >= 700 ? 3 : 4.5)) bad.push(e.tagName + " " + e.textContent.trim().slice(0, 30) + " " + ratio.toFixed(2));
  }
  return bad;
})()`

// structure finds what screen readers stumble over.
const structure = `(() => {
  const bad = [], all = q => [...document.querySelectorAll(q)];
  const name = e => (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(" ").map(i => (document.getElementById(i) || {}).textContent || "").join(" ") || e.textContent).trim();
  if (!document.documentElement.lang) bad.push("no language");
  if (!document.title) bad.push("no title");
  for (const one of ["h1", "main", "header", "footer"]) if (all(one).length !== 1) bad.push(all(one).length + " of " + one);
  const ids = all("[id]").map(e => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => bad.push("id twice: " + id));
  all("a, button, section, [role=region], meter, [aria-labelledby]").filter(e => !name(e)).forEach(e => bad.push("no name: " + e.outerHTML.slice(0, 80)));
  all("[aria-labelledby]").filter(e => !document.getElementById(e.getAttribute("aria-labelledby"))).forEach(e => bad.push("label missing: " + e.outerHTML.slice(0, 80)));
  let level = 0;
  for (const h of all("h1, h2, h3, h4")) { const l = +h.tagName[1]; if (l > level + 1) bad.push("a level is left out before " + h.textContent); level = l; }
  all("table").filter(t => !t.caption || !t.caption.textContent.trim()).forEach(() => bad.push("a table without a caption"));
  all("th").filter(h => !h.scope).forEach(h => bad.push("a head without a scope: " + h.textContent));
  all("ul > *, ol > *").filter(e => e.tagName !== "LI").forEach(e => bad.push("a list with " + e.tagName));
  all("[tabindex]").filter(e => e.tabIndex > 0).forEach(e => bad.push("its own focus order: " + e.outerHTML.slice(0, 80)));
  all("img, input, iframe").forEach(e => bad.push("unexpected " + e.tagName));
  all("main a, main .tiles div").filter(e => e.closest(".tiles") && e.getBoundingClientRect().height < 24).forEach(e => bad.push("too small to hit: " + e.textContent));
  return bad;
})()`

func TestInABrowserPeopleCanReadEverything(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	_, url := shown(t)
	for _, size := range []struct{ width, height int }{{1280, 900}, {768, 1024}, {390, 844}, {320, 640}} {
		for _, scheme := range []string{"light", "dark"} {
			for name, query := range map[string]string{"fleet": "/", "detail": "/?proxy=europe-west1-a-with-a-name-that-is-as-long-as-names-may-be-63-ok", "filter": "/?state=Paused"} {
				b.size(size.width, size.height)
				b.scheme(scheme)
				b.open(url + query)
				where := fmt.Sprintf("%s %s %d", name, scheme, size.width)
				b.screenshot(fmt.Sprintf("%s-%s-%d", name, scheme, size.width))
				var wrong []string
				b.eval(contrast, &wrong)
				require.Empty(t, wrong, where)
				b.eval(structure, &wrong)
				require.Empty(t, wrong, where)
				require.Empty(t, b.axe(), where)
				var wide int
				b.eval("document.documentElement.scrollWidth - innerWidth", &wide)
				require.LessOrEqual(t, wide, 0, "%s: no horizontal scrolling", where)
				if (size.width < 600 || size.width > 1200) && name != "filter" {
					b.eval("document.querySelector('.scroll').scrollWidth - document.querySelector('.scroll').clientWidth", &wide)
					require.LessOrEqual(t, wide, 0, "%s: nor within the table", where)
				}
				b.eval(`[...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll") && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" && e.clientWidth > 0).map(e => e.outerHTML.slice(0, 80))`, &wrong)
				require.Empty(t, wrong, "%s: nothing sticks out", where)
			}
		}
	}
	var light, dark string
	b.eval("getComputedStyle(document.body).backgroundColor", &dark)
	b.scheme("light")
	b.eval("getComputedStyle(document.body).backgroundColor", &light)
	require.NotEqual(t, light, dark)
	require.Empty(t, b.complaints(), "the browser refused nothing and no script failed")
}

func TestInABrowserThePageKeepsItselfCurrent(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	r, url := shown(t)
	b.size(900, 700)
	b.open(url + "/")
	const link = `document.querySelector('a[href="/?proxy=us-east1-c"]')`
	require.True(t, b.truth(link+".focus(), document.activeElement === "+link))
	b.eval("(document.querySelector('.scroll').scrollLeft = 7, 0)", new(int))
	r.add("us-west1-new", nil, nil)
	r.clock.Advance(keep)
	require.Eventually(t, func() bool { return b.truth(`document.body.textContent.includes("us-west1-new")`) }, 30*time.Second, 100*time.Millisecond)
	require.True(t, b.truth("document.activeElement === "+link), "whoever stands on a link stays there")
	require.True(t, b.truth("document.querySelector('#news').textContent === ''"))

	r.store.fail.Store(true)
	r.clock.Advance(keep)
	require.Eventually(t, func() bool {
		return b.truth(`document.querySelector("#news").textContent.includes("What you see is old")`)
	}, 30*time.Second, 100*time.Millisecond)
	require.True(t, b.truth(`document.body.textContent.includes("us-west1-new")`), "what was seen stays to be read")
	b.screenshot("old")
	var wrong []string
	b.eval(contrast, &wrong)
	require.Empty(t, wrong)
	r.store.fail.Store(false)
	require.Eventually(t, func() bool { return b.truth(`document.querySelector("#news").textContent === ""`) }, 30*time.Second, 100*time.Millisecond)
}

func TestInABrowserTheKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	_, url := shown(t)
	b.size(1280, 900)
	b.open(url + "/")
	var links int
	b.eval("document.querySelectorAll('a').length", &links)
	seen := map[string]bool{}
	for i := range links + 1 {
		b.press("Tab")
		var at struct {
			Index   int
			Text    string
			Visible bool
			Outline string
		}
		b.eval(`(() => { const e = document.activeElement, box = e.getBoundingClientRect(), s = getComputedStyle(e);
			return {Index: [...document.querySelectorAll("a, [tabindex='0']")].indexOf(e), Text: e.textContent.trim().slice(0, 40), Visible: box.width > 0 && box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight, Outline: s.outlineStyle}; })()`, &at)
		require.Equal(t, i, at.Index, "in the order of the page: %s", at.Text)
		require.True(t, at.Visible, at.Text)
		require.NotEqual(t, "none", at.Outline, at.Text)
		if i == 0 {
			require.Equal(t, "Skip to the fleet", at.Text)
		}
		seen[at.Text] = true
	}
	require.True(t, seen["status as JSON"])
}

func TestInABrowserWithoutScriptsEverythingIsThere(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	_, url := shown(t)
	b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.do("Page.navigate", map[string]any{"url": url + "/?state=Unhealthy"}, nil)
	require.Eventually(t, func() bool {
		var root struct{ Root struct{ NodeID int } }
		b.do("DOM.getDocument", nil, &root)
		html, err := b.try(b.session, "DOM.getOuterHTML", map[string]any{"nodeId": root.Root.NodeID})
		return err == nil && bytes.Contains(html, []byte("connection refused")) && bytes.Contains(html, []byte("leases live")) && bytes.Contains(html, []byte("status as JSON"))
	}, 30*time.Second, 100*time.Millisecond)
}
