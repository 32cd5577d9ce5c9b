package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an answer of the lease function that is no success.
type Refusal struct {
	Code       int               // HTTP status
	Reason     string            // NO_CAPACITY and the like; "" when something in front of the function answered
	Message    string            // for people
	Metadata   map[string]string // counts, or the field that is at fault
	RetryAfter time.Duration     // after which another try is worth it; 0: none is
}

// Error says reason and message.
func (r *Refusal) Error() string {
	if r.Reason == "" {
		return "lease refused: " + r.Message
	}
	return "lease refused: " + r.Reason + ": " + r.Message
}

// Ended reports whether err says that the lease which was asked for is no more: it expired, was given
// back, or its proxy is gone.
func Ended(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && (r.Code == http.StatusGone || r.Code == http.StatusNotFound && r.Reason == "LEASE_NOT_FOUND")
}

// refusal reads an answer. One that is not the function's own, and that says the function could not
// be reached, is a lost call.
func refusal(resp *http.Response, body []byte) error {
	var answer struct {
		Error struct {
			Message string `json:"message"`
			Details []struct {
				Reason   string            `json:"reason"`
				Metadata map[string]string `json:"metadata"`
			} `json:"details"`
		} `json:"error"`
	}
	r := &Refusal{Code: resp.StatusCode, Message: "the lease function's URL answers " + resp.Status, RetryAfter: retryAfter(resp.Header)}
	if json.Unmarshal(body, &answer) == nil && answer.Error.Message != "" {
		r.Message = answer.Error.Message
		for _, d := range answer.Error.Details {
			r.Reason, r.Metadata = d.Reason, d.Metadata
		}
	}
	if r.Reason == "" && r.Code >= http.StatusInternalServerError {
		return &lostError{r}
	}
	return r
}

func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// serverTime is when an answer was made, by the server's clock and not before it: the header has
// whole seconds. Without one it is our own time, for want of better.
func serverTime(resp *http.Response) time.Time {
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return at.Add(time.Second)
}
