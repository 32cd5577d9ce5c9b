package lease

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server is the HTTP API of a Service.
type Server struct {
	Service *Service
	Auth    Authenticator // nil: nobody is asked who they are
	Console http.Handler  // serves GET /; nil: a line of text
	Version string
}

// Handler returns the API. Every answer is in the OpenAPI document that it serves.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern, verb string, h func(*http.Request) (int, any, error)) {
		mux.Handle(pattern, s.call(verb, h))
	}
	handle("POST /v1/leases", "acquire", s.acquire)
	handle("POST /v1/leases:batch", "batch", s.batch)
	handle("GET /v1/leases/{id}", "get", s.get)
	handle("DELETE /v1/leases/{id}", "release", func(r *http.Request) (int, any, error) { return s.release(r, r.PathValue("id")) })
	handle("POST /v1/leases/{id}", "verb", s.verb)
	handle("GET /v1/proxies", "proxies", s.proxies)
	handle("GET /v1/proxies/{name}", "proxy", s.proxy)
	handle("GET /v1/status", "status", func(r *http.Request) (int, any, error) {
		st, err := s.Service.Status(r.Context(), s.Version)
		return http.StatusOK, st, err
	})
	mux.HandleFunc("GET /openapi.json", serveOpenAPI)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte("{\"status\":\"ok\"}\n"))
	})
	mux.Handle("GET /{$}", s.authenticated(s.console()))
	mux.HandleFunc("/", s.nothing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !served(r) { // before the mux, which would redirect, and take a verb for an id
			s.nothing(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// served reports whether a path is written as it should be, and takes the method.
func served(r *http.Request) bool {
	if r.URL.Path != path.Clean(r.URL.Path) {
		return false
	}
	allowed := methods(r.URL.Path)
	return slices.Contains(allowed, r.Method) || r.Method == http.MethodHead && slices.Contains(allowed, http.MethodGet)
}

func (s *Server) console() http.Handler {
	if s.Console != nil {
		return s.Console
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("proxyfleet lease function; see /openapi.json\n"))
	})
}

// methods are those of each path, for answers to others.
func methods(p string) []string {
	switch {
	case p == "/v1/leases", p == "/v1/leases:batch", strings.HasPrefix(p, "/v1/leases/") && strings.Contains(p, ":"):
		return []string{http.MethodPost}
	case strings.HasPrefix(p, "/v1/leases/"):
		return []string{http.MethodGet, http.MethodDelete}
	case p == "/", p == "/healthz", p == "/openapi.json", p == "/v1/status", p == "/v1/proxies", strings.HasPrefix(p, "/v1/proxies/"):
		return []string{http.MethodGet}
	}
	return nil
}

// nothing answers what no pattern matches.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	if allowed := methods(r.URL.Path); len(allowed) > 0 && !served(r) && r.URL.Path == path.Clean(r.URL.Path) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.refuse(w, refuse(MethodNotAllowed, "%s is not for %s; it takes %s", printable(r.URL.Path), r.Method, strings.Join(allowed, ", ")))
		return
	}
	s.refuse(w, refuse(NotFound, "there is nothing at this path; see /openapi.json"))
}

// call wraps one operation: who calls, what is answered, one line in the log.
func (s *Server) call(verb string, h func(*http.Request) (int, any, error)) http.Handler {
	return s.authenticated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		code, out, err := h(r)
		if err != nil {
			code = s.refuse(w, asError(err))
		} else {
			writeJSON(w, code, out)
		}
		s.log(r, verbOf(r, verb), code, time.Since(began), out, err)
	}))
}

// verbOf names what was called: of a lease's own verbs, one of the known ones, so that labels stay few.
func verbOf(r *http.Request, verb string) string {
	if verb != "verb" {
		return verb
	}
	_, asked, _ := strings.Cut(r.PathValue("id"), ":")
	if slices.Contains([]string{"renew", "release", "report"}, asked) {
		return asked
	}
	return "unknown"
}

// log writes one line per call, without credentials and without what callers sent.
func (s *Server) log(r *http.Request, verb string, code int, took time.Duration, out any, err error) {
	if m := s.Service.Metrics; m != nil {
		m.calls.WithLabelValues(verb, strconv.Itoa(code)).Inc()
	}
	level, attrs := slog.LevelInfo, []slog.Attr{slog.String("verb", verb), slog.Int("code", code), slog.Float64("ms", float64(took.Microseconds())/1000)}
	if l, ok := out.(Lease); ok && err == nil {
		attrs = append(attrs, slog.String("proxy", l.Proxy.Name), slog.String("holder", l.Holder), slog.Int64("fence", l.FencingToken))
	}
	if err != nil {
		e := asError(err)
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
		if e.Reason == StoreUnavailable {
			level = slog.LevelError
			if e.Err != nil {
				attrs = append(attrs, slog.String("error", e.Err.Error()))
			}
		}
	}
	s.Service.Log.LogAttrs(r.Context(), level, "lease call", attrs...)
}

func (s *Server) acquire(r *http.Request) (int, any, error) {
	b := readBody(r)
	req := b.acquireRequest(holderOf(r))
	if err := b.done(acquireFields); err != nil {
		return 0, nil, err
	}
	began := time.Now()
	l, err := s.Service.Acquire(r.Context(), req)
	s.Service.Metrics.acquired(time.Since(began), req.Wait > 0, granted(err), err)
	return http.StatusCreated, l, err
}

func granted(err error) int {
	if err != nil {
		return 0
	}
	return 1
}

func (s *Server) batch(r *http.Request) (int, any, error) {
	b := readBody(r)
	req := b.acquireRequest(holderOf(r))
	count := b.whole("count", 1, MaxBatch, 0)
	if count == 0 {
		b.fail(invalid("count", "must be between 1 and %d", MaxBatch))
	}
	if err := b.done(acquireFields + ", count"); err != nil {
		return 0, nil, err
	}
	began := time.Now()
	out, err := s.Service.AcquireBatch(r.Context(), req, count)
	s.Service.Metrics.acquired(time.Since(began), true, len(out.Leases), err)
	return http.StatusCreated, out, err
}

func (s *Server) get(r *http.Request) (int, any, error) {
	l, err := s.Service.Get(r.Context(), r.PathValue("id"))
	return http.StatusOK, l, err
}

// verb serves POST /v1/leases/{id}:{verb}.
func (s *Server) verb(r *http.Request) (int, any, error) {
	id, verb, _ := strings.Cut(r.PathValue("id"), ":")
	switch verb {
	case "renew":
		b := readBody(r)
		ttl := b.ttl(0)
		if err := b.done("ttlSeconds"); err != nil {
			return 0, nil, err
		}
		l, err := s.Service.Renew(r.Context(), id, ttl)
		return http.StatusOK, l, err
	case "release":
		return s.release(r, id)
	case "report":
		b := readBody(r)
		outcome, target := b.outcome(true), b.target()
		if err := b.done("outcome, target"); err != nil {
			return 0, nil, err
		}
		return http.StatusOK, struct{}{}, s.Service.Report(r.Context(), id, outcome, target)
	}
	return 0, nil, refuse(NotFound, "there is nothing at this path; a lease takes :renew, :release and :report")
}

func (s *Server) release(r *http.Request, id string) (int, any, error) {
	b := readBody(r)
	outcome, target := b.outcome(false), b.target()
	if err := b.done("outcome, target"); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct{}{}, s.Service.Release(r.Context(), id, outcome, target)
}

func (s *Server) proxies(r *http.Request) (int, any, error) {
	f, state, err := queryFilter(r)
	if err != nil {
		return 0, nil, err
	}
	list, err := s.Service.Proxies(r.Context(), f, state)
	return http.StatusOK, map[string]any{"proxies": list}, err
}

func (s *Server) proxy(r *http.Request) (int, any, error) {
	p, err := s.Service.Proxy(r.Context(), r.PathValue("name"))
	return http.StatusOK, p, err
}

func writeJSON(w http.ResponseWriter, code int, out any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(out)
}

// refuse answers in the shape of AIP-193 and returns the HTTP status.
func (s *Server) refuse(w http.ResponseWriter, e *Error) int {
	m, ok := meanings()[e.Reason]
	if !ok {
		m = meanings()[StoreUnavailable]
	}
	if m.retry > 0 {
		w.Header().Set("Retry-After", retryAfter(m.retry))
	}
	if e.Reason == Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	metadata := map[string]string{}
	for k, v := range e.Metadata {
		metadata[k] = v
	}
	if e.Field != "" {
		metadata["field"] = e.Field
	}
	info := map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.Reason, "domain": "proxyfleet"}
	if len(metadata) > 0 {
		info["metadata"] = metadata
	}
	writeJSON(w, m.code, map[string]any{"error": map[string]any{
		"code": m.code, "status": m.status, "message": e.Message, "details": []any{info},
	}})
	return m.code
}
