package standin

import "strings"

func pubSub() []route {
	const topic, subscription = `(projects/[^/]+)/topics`, `(projects/[^/]+)/subscriptions`
	return []route{
		{"GET", topic, func(s *Server, c *call) (any, error) {
			return Object{"topics": s.children("pubsub", c.args[1], "topics")}, nil
		}},
		{"GET", subscription, func(s *Server, c *call) (any, error) {
			return Object{"subscriptions": s.children("pubsub", c.args[1], "subscriptions")}, nil
		}},
		{"PUT", topic + `/([^/:]+)`, func(s *Server, c *call) (any, error) { return s.createPubSub(c, clone(c.body)) }},
		{"PUT", subscription + `/([^/:]+)`, (*Server).createSubscription},
		{"PATCH", topic + `/[^/:]+`, (*Server).patchPubSub},
		{"PATCH", subscription + `/[^/:]+`, (*Server).patchPubSub},
	}
}

func (s *Server) createPubSub(c *call, o Object) (any, error) {
	if match(`[a-zA-Z][-a-zA-Z0-9._~+%]{2,254}`, c.args[2]) == nil || strings.HasPrefix(c.args[2], "goog") {
		return nil, fail(400, "Invalid resource name given (name=%s).", c.name)
	}
	o["name"] = c.name
	if err := s.create("pubsub", c.name, o); err != nil {
		return nil, fail(409, "Resource already exists in the project (resource=%s).", c.args[2])
	}
	return o, nil
}

func (s *Server) createSubscription(c *call) (any, error) {
	o := clone(c.body)
	if err := s.checkSubscription(o); err != nil {
		return nil, err
	}
	o["state"], o["topic"] = "ACTIVE", s.canonical(text(o, "topic"))
	if o["ackDeadlineSeconds"] == nil {
		o["ackDeadlineSeconds"] = 10.0
	}
	return s.createPubSub(c, o)
}

func (s *Server) patchPubSub(c *call) (any, error) {
	old, err := s.get("pubsub", c.name)
	if err != nil {
		return nil, err
	}
	mask := text(c.body, "updateMask")
	if mask == "" {
		return nil, fail(400, "The update_mask in the request is required.")
	}
	kind, body := "topic", c.body["topic"]
	if strings.Contains(c.name, "/subscriptions/") {
		kind, body = "subscription", c.body["subscription"]
	}
	changes, _ := body.(Object)
	o := patch(old, changes, mask)
	if kind == "subscription" {
		if err := s.checkSubscription(o); err != nil {
			return nil, err
		}
	}
	s.resources["pubsub/"+c.name] = o
	return o, nil
}

func (s *Server) checkSubscription(o Object) error {
	if t := text(o, "topic"); !s.has("pubsub", t) {
		return fail(404, "Resource not found (resource=%s).", lastPart(t))
	}
	if d := text(o, "deadLetterPolicy", "deadLetterTopic"); d != "" && !s.has("pubsub", d) {
		return fail(404, "Resource not found (resource=%s).", lastPart(d))
	}
	if n, ok := dig(o, "deadLetterPolicy", "maxDeliveryAttempts").(float64); ok && n != 0 && (n < 5 || n > 100) {
		return fail(400, "max_delivery_attempts must be between 5 and 100")
	}
	if n, ok := o["ackDeadlineSeconds"].(float64); ok && n != 0 && (n < 10 || n > 600) {
		return fail(400, "Invalid ack deadline given (ackDeadlineSeconds=%v): it must be between 10 and 600.", n)
	}
	if p := text(o, "pushConfig", "pushEndpoint"); p != "" && !strings.HasPrefix(p, "https://") {
		return fail(400, "Invalid push endpoint given (endpoint=%s).", p)
	}
	if account := text(o, "pushConfig", "oidcToken", "serviceAccountEmail"); account != "" {
		return s.checkAccount(account)
	}
	return nil
}
