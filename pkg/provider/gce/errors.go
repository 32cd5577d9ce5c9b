package gce

import (
	"context"
	"errors"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// cloudError is what the cloud said in a form that may be shown: one line, no user data. errors.As
// finds the client library's own error behind it.
type cloudError struct {
	text  string
	cause error // nil where there is none that a caller may take for its own
}

func (e *cloudError) Error() string { return e.text }
func (e *cloudError) Unwrap() error { return e.cause }

// fail turns the error of a call into one of ours. The caller's own ended context passes unchanged;
// a deadline that is not the caller's is the cloud's slowness.
func (p *Provider) fail(ctx context.Context, v verb, name, zone string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	s := signalOf(v, err)
	s.name = name
	e := classify(s, zone, p.now())
	e.Err = shown(s, err)
	return e
}

// failure turns the error of an operation into one of ours; it returns nil when there is none.
func (p *Provider) failure(op *computepb.Operation, name, zone string) *provider.Error {
	s, failed := failureOf(verbLaunch, op)
	if !failed {
		return nil
	}
	s.name = name
	e := classify(s, zone, p.now())
	e.Err = shown(s, nil)
	return e
}

// shown returns the message of a signal as an error. Context errors in cause are those of our own
// request timeout: they are left out, or a caller would take them for its own.
func shown(s signal, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		cause = nil
	}
	text := strings.Join(strings.Fields(withoutMetadata(s.message)), " ")
	const most = 500 // status documents keep it
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return &cloudError{text: text, cause: cause}
}

// withoutMetadata cuts a message before it quotes a metadata value, which may be secret user data: the
// API names the field, closes the quotation mark and then repeats the value.
func withoutMetadata(message string) string {
	const field = "resource.metadata"
	at := strings.Index(message, field)
	if at < 0 {
		return message
	}
	end := strings.IndexAny(message[at:], "':")
	if end < 0 {
		end = len(message) - at
	}
	return message[:at+end] + "' (its value is not repeated here)"
}

// invalid is an ErrPermanent of our own making: the request cannot be put to the cloud at all.
func invalid(v verb, name, zone, reason string, err error) error {
	return &provider.Error{Class: provider.ErrPermanent, Op: string(v), Name: name, Zone: zone, Reason: reason, Err: err}
}
