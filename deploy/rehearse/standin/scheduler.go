package standin

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // jobs' time zones are checked on any machine
)

func scheduler() []route {
	const jobs = `(projects/[^/]+/locations/[^/]+)/jobs`
	return []route{
		{"GET", jobs, func(s *Server, c *call) (any, error) {
			return Object{"jobs": s.children("cloudscheduler", c.args[1], "jobs")}, nil
		}},
		{"POST", jobs, (*Server).createJob},
		{"PATCH", jobs + `/[^/:]+`, (*Server).patchJob},
		{"POST", `(` + jobs + `/[^/:]+):(pause|resume|run)`, (*Server).switchJob},
	}
}

func (s *Server) createJob(c *call) (any, error) {
	o := clone(c.body)
	name := s.canonical(text(o, "name"))
	if !strings.HasPrefix(name, c.args[1]+"/jobs/") {
		return nil, fail(400, "Job name must be formatted: \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/jobs/<JOB_ID>\".")
	}
	if err := s.checkJob(o); err != nil {
		return nil, err
	}
	o["name"], o["state"], o["userUpdateTime"] = name, "ENABLED", now()
	if err := s.create("cloudscheduler", name, o); err != nil {
		return nil, fail(409, "Job already exists.")
	}
	return o, nil
}

func (s *Server) patchJob(c *call) (any, error) {
	old, err := s.get("cloudscheduler", c.name)
	if err != nil {
		return nil, err
	}
	o := patch(old, c.body, c.query.Get("updateMask"))
	o["name"] = c.name
	if err := s.checkJob(o); err != nil {
		return nil, err
	}
	s.resources["cloudscheduler/"+c.name] = o
	return o, nil
}

func (s *Server) switchJob(c *call) (any, error) {
	o, err := s.get("cloudscheduler", c.args[1])
	if err != nil {
		return nil, err
	}
	if state := map[string]string{"pause": "PAUSED", "resume": "ENABLED"}[c.args[len(c.args)-1]]; state != "" {
		o["state"] = state
	}
	return o, nil
}

func (s *Server) checkJob(o Object) error {
	if !validSchedule(text(o, "schedule")) {
		return fail(400, "Schedule or time zone is invalid. (schedule %q)", text(o, "schedule"))
	}
	if _, err := time.LoadLocation(text(o, "timeZone")); err != nil {
		return fail(400, "Schedule or time zone is invalid. (time zone %q)", text(o, "timeZone"))
	}
	if d := text(o, "attemptDeadline"); d != "" {
		if t, err := time.ParseDuration(d); err != nil || t < 15*time.Second || t > 30*time.Minute {
			return fail(400, "Job.attempt_deadline must be between [15s, 30m]. (%s)", d)
		}
	}
	u, err := url.Parse(text(o, "httpTarget", "uri"))
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return fail(400, "Job.http_target.uri is invalid: %q", text(o, "httpTarget", "uri"))
	}
	if account := text(o, "httpTarget", "oidcToken", "serviceAccountEmail"); account != "" {
		return s.checkAccount(account)
	}
	return nil
}

// validSchedule takes unix-cron's five fields.
func validSchedule(schedule string) bool {
	fields := strings.Fields(schedule)
	limits := [][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}
	if len(fields) != len(limits) {
		return false
	}
	for i, field := range fields {
		for _, part := range strings.Split(field, ",") {
			if !validPart(part, limits[i], i) {
				return false
			}
		}
	}
	return true
}

func validPart(part string, limit [2]int, field int) bool {
	span, step, stepped := strings.Cut(part, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1) {
		return false
	}
	if span == "*" {
		return true
	}
	from, to, ranged := strings.Cut(span, "-")
	valid := func(v string) bool {
		names := map[int]string{3: "jan feb mar apr may jun jul aug sep oct nov dec", 4: "sun mon tue wed thu fri sat"}[field]
		if slices.Contains(strings.Fields(names), strings.ToLower(v)) {
			return true
		}
		n, err := strconv.Atoi(v)
		return err == nil && n >= limit[0] && n <= limit[1]
	}
	return valid(from) && (!ranged || valid(to))
}
