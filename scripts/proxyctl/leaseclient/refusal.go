package leaseclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Refusal is an answer of the lease function that is no success.
type Refusal struct {
	Code       int           // HTTP status
	Reason     string        // NO_CAPACITY and the like; "" when the answer was not the function's
	Message    string        // for people
	Counts     []string      // "Unhealthy: 3" and the like, in order
	RetryAfter time.Duration // after which another try is worth it; 0 when unknown
}

// Error says reason, message and counts.
func (r *Refusal) Error() string {
	parts := []string{}
	for _, s := range []string{r.Reason, r.Message, strings.Join(r.Counts, ", ")} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Ended reports whether the lease that was asked about is no more.
func (r *Refusal) Ended() bool { return r.Code == http.StatusGone || r.Code == http.StatusNotFound }

// Unavailable reports whether time may heal it.
func (r *Refusal) Unavailable() bool {
	return r.Code == http.StatusServiceUnavailable || r.Code == http.StatusTooManyRequests
}

func refusalOf(resp *http.Response, body []byte) error {
	var answer struct {
		Error struct {
			Message string `json:"message"`
			Details []struct {
				Reason   string            `json:"reason"`
				Metadata map[string]string `json:"metadata"`
			} `json:"details"`
		} `json:"error"`
	}
	r := &Refusal{Code: resp.StatusCode, RetryAfter: retryAfter(resp.Header)}
	if json.Unmarshal(body, &answer) == nil {
		r.Message = answer.Error.Message
		for _, d := range answer.Error.Details {
			r.Reason = d.Reason
			for k, v := range d.Metadata {
				if k != "field" {
					r.Counts = append(r.Counts, k+": "+v)
				}
			}
		}
	}
	slices.Sort(r.Counts)
	if r.Reason == "" && r.Message == "" {
		r.Message = fmt.Sprintf("the lease function's URL answers %s", resp.Status)
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			r.Message += ": you may not call it; see proxyctl lease --help"
		}
	}
	return r
}
