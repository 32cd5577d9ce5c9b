// Package console is the page that shows people the fleet.
package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"crawl.example.com/proxyfleet/pkg/store"
)

// Config is what a page needs.
type Config struct {
	Store    store.Store
	Version  string
	Fleet    string                // project and database, for the heading
	Refusals func() map[string]int // leases refused by reason since this instance started; may be nil
	Now      func() time.Time
}

// Handler serves the page at / and, with ?part=main, the part of it that changes. Looking costs one
// read per document and slot, at most once in five seconds however many people look.
type Handler struct {
	config Config

	mu    sync.Mutex
	last  Snapshot
	taken time.Time
	seen  history
}

// New returns a page.
func New(c Config) *Handler { return &Handler{config: c, seen: history{}} }

const (
	keep        = 5 * time.Second
	readTimeout = 10 * time.Second
	// slotsRead bounds what one look costs; a larger fleet shows lower bounds.
	slotsRead = 5000
)

//go:embed page.html
var pageHTML string

// page is read when it is first shown: crawlers must not wait for it when an instance starts.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"ago": func(now, t time.Time) string {
			if t.IsZero() {
				return "–"
			}
			return span(now.Sub(t))
		},
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"class": func(state string) string {
			switch state {
			case "Ready":
				return "good"
			case "Rejected", "Failed", "Unhealthy":
				return "bad"
			}
			return "wait"
		},
	}).Parse(pageHTML))
})

// policy lets the browser run the page's own script and style, known by their hashes, and nothing that
// a name or a message might smuggle in.
var policy = sync.OnceValue(func() string {
	var out bytes.Buffer
	if err := page().ExecuteTemplate(&out, "page", view{}); err != nil {
		return "default-src 'none'"
	}
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		hashOf(out.String(), "style"), hashOf(out.String(), "script"))
})

// hashOf returns the source expression of the text within an element.
func hashOf(html, element string) string {
	_, rest, _ := strings.Cut(html, "<"+element+">")
	text, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ServeHTTP serves the page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	snapshot, err := h.snapshot(r.Context())
	if err != nil {
		http.Error(w, "the store cannot be read at the moment; reload in a few seconds", http.StatusServiceUnavailable)
		return
	}
	var refusals map[string]int
	if h.config.Refusals != nil {
		refusals = h.config.Refusals()
	}
	v := build(snapshot, refusals, r.FormValue("state"), r.FormValue("proxy"), h.config.Now())
	v.Version, v.Fleet = h.config.Version, h.config.Fleet
	name := "page"
	if r.FormValue("part") == "main" {
		name = "main"
	}
	var out bytes.Buffer
	if err := page().ExecuteTemplate(&out, name, v); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", policy())
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(out.Bytes())
}

// snapshot reads the store, or returns what was read a moment ago. One look at a time.
func (h *Handler) snapshot(ctx context.Context) (Snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.config.Now(); !h.taken.IsZero() && now.Sub(h.taken) < keep {
		return h.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var s Snapshot
	var err error
	if s.Proxies, err = h.config.Store.ListProxies(ctx); err != nil {
		return s, err
	}
	if s.Shards, err = h.config.Store.ReadCatalog(ctx); err != nil {
		return s, err
	}
	if s.Slots, err = h.config.Store.SlotsFrom(ctx, "", "", slotsRead); err != nil {
		return s, err
	}
	s.Partial = len(s.Slots) == slotsRead
	if s.Run, err = h.config.Store.GetRun(ctx); err != nil {
		return s, err
	}
	h.seen.note(s.Proxies)
	s.Probes = maps.Clone(h.seen)
	h.last, h.taken = s, h.config.Now()
	return s, nil
}
