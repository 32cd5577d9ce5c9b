package health

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// TestOurOwnTroubleIsNobodysFault looks at the errors of dialing that no test can cause on a machine
// that is well, among those that it can.
func TestOurOwnTroubleIsNobodysFault(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		return fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)})
	}
	for name, row := range map[string]struct {
		err     error
		want    fleet.Outcome
		certain bool
	}{
		"too many open files":     {dial(syscall.EMFILE), fleet.OutcomeInconclusive, false},
		"no free port":            {dial(syscall.EADDRNOTAVAIL), fleet.OutcomeInconclusive, false},
		"no buffers":              {dial(syscall.ENOBUFS), fleet.OutcomeInconclusive, false},
		"a sandbox that forbids":  {dial(syscall.EPERM), fleet.OutcomeInconclusive, false},
		"whatever else":           {errors.New("odd"), fleet.OutcomeInconclusive, false},
		"refused":                 {dial(syscall.ECONNREFUSED), fleet.OutcomeRefused, true},
		"no route to host":        {dial(syscall.EHOSTUNREACH), fleet.OutcomeRefused, false},
		"no route to network":     {dial(syscall.ENETUNREACH), fleet.OutcomeRefused, false},
		"timed out by the system": {dial(syscall.ETIMEDOUT), fleet.OutcomeConnectTimeout, false},
		"reset while connecting":  {dial(syscall.ECONNRESET), fleet.OutcomeReset, false},
		"no such host":            {&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, fleet.OutcomeDNS, false},
		"name servers time out":   {&net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}}, fleet.OutcomeDNS, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dialFault(row.err)
			assert.Equal(t, row.want, f.outcome)
			assert.Equal(t, row.certain, f.certain)
		})
	}
}
