package health

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// fault is why a probe got no answer.
type fault struct {
	outcome fleet.Outcome
	detail  string
	certain bool
}

func (f *fault) result() Result {
	return Result{Outcome: f.outcome, Detail: f.detail, Certain: f.certain}
}

// dialFault says why there is no connection.
func dialFault(err error) *fault {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return &fault{outcome: fleet.OutcomeDNS, detail: "no such host"}
	case errors.As(err, &dns):
		return &fault{outcome: fleet.OutcomeDNS, detail: "the name could not be resolved"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &fault{outcome: fleet.OutcomeRefused, detail: "connection refused", certain: true}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &fault{outcome: fleet.OutcomeRefused, detail: "no route to the address"}
	case isTimeout(err):
		return &fault{outcome: fleet.OutcomeConnectTimeout, detail: "no connection in time"}
	case isBroken(err):
		return &fault{outcome: fleet.OutcomeReset, detail: "the connection broke while it was opened"}
	}
	// What is left is ours: no file descriptors, no ports, a sandbox that forbids it.
	return &fault{outcome: fleet.OutcomeInconclusive, detail: "this machine could not open a connection"}
}

// fault says why an open connection is of no use.
func (w *wire) fault(err error) *fault {
	var op *net.OpError
	switch {
	case isTimeout(err) && !w.tunneled && !w.heard:
		return &fault{outcome: fleet.OutcomeConnectTimeout, detail: "connected, but silent"}
	case isTimeout(err):
		return &fault{outcome: fleet.OutcomeTimeout, detail: "no whole answer in time"}
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"): // crypto/tls, alerts
		return &fault{outcome: fleet.OutcomeTLS, detail: "the encrypted connection broke down"}
	case isBroken(err):
		return &fault{outcome: fleet.OutcomeReset, detail: "the connection broke"}
	}
	return w.nonsense()
}

// nonsense is the fault of whoever wrote what we read: nobody but the target can write into TLS.
func (w *wire) nonsense() *fault {
	if w.conn != w.tcp {
		return &fault{outcome: fleet.OutcomeStatusMismatch, detail: "the target's answer is not HTTP"}
	}
	return &fault{outcome: fleet.OutcomeProxyError, detail: "the answer is not HTTP"}
}

// handshakeFault says why there is no TLS with the target.
func (w *wire) handshakeFault(err error) *fault {
	var (
		notTLS    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case isTimeout(err), isBroken(err):
		return w.fault(err)
	case errors.As(err, &notTLS):
		return &fault{outcome: fleet.OutcomeProxyError, detail: "what came through the tunnel is not TLS"}
	case errors.As(err, &authority):
		return &fault{outcome: fleet.OutcomeTLS, detail: "certificate of an unknown authority"}
	case errors.As(err, &host):
		return &fault{outcome: fleet.OutcomeTLS, detail: "certificate of another host"}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &fault{outcome: fleet.OutcomeTLS, detail: "certificate expired or not valid yet"}
	}
	return &fault{outcome: fleet.OutcomeTLS, detail: "the TLS handshake failed"}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &n) && n.Timeout())
}

func isBroken(err error) bool {
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}
