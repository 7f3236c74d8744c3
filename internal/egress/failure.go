package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
)

// ErrorType says what kind of failure an attempt met. The values are those that the ledger stores.
type ErrorType string

// The error types, in the order in which they are tested: the first that holds is the one recorded.
const (
	// BlockedByPolicy means that the guard refused the target. Nothing was sent.
	BlockedByPolicy ErrorType = "BlockedByPolicy"
	// Interrupted means that the process is shutting down, or that the caller went away. It is not an attempt.
	Interrupted ErrorType = "Interrupted"
	// Cancelled means that a person cancelled the task; the caller's context says so with [ErrCancelled].
	Cancelled ErrorType = "Cancelled"
	// DnsFailure means that the name server answered, but not with an address. No answer is a Timeout.
	DnsFailure ErrorType = "DnsFailure"
	// TlsError means that no TLS session came about, for any reason but silence: a bad certificate, a server that
	// speaks something else, or one that closes during the handshake.
	TlsError ErrorType = "TlsError"
	// Timeout means that the time for the phase, or for the whole attempt, ran out.
	Timeout ErrorType = "Timeout"
	// ConnectionFailed means a connection that was refused, reset, ended early or unreachable, or a malformed answer.
	ConnectionFailed ErrorType = "ConnectionFailed"
	// ConfigurationError means that no valid request can be made of what was given: a bad header or URL.
	ConfigurationError ErrorType = "ConfigurationError"
	// HttpError means an answer that the caller does not take for a success. This package never sets it: it is here so
	// that the values stand together.
	HttpError ErrorType = "HttpError"
)

// Phase is the part of an attempt in which it failed. It is empty where nothing was begun.
type Phase string

// The phases, in the order of an attempt. PhaseHeaders runs from the connection to the end of the answer's headers, so
// it covers writing the request.
const (
	PhaseDNS     Phase = "dns"
	PhaseConnect Phase = "connect"
	PhaseTLS     Phase = "tls"
	PhaseHeaders Phase = "headers"
	PhaseBody    Phase = "body"
)

var (
	// ErrInterrupted is a cause for context.WithCancelCause that reads as Interrupted. It wraps context.Canceled, and a
	// plain context.Canceled means the same.
	ErrInterrupted = fmt.Errorf("interrupted: %w", context.Canceled)
	// ErrCancelled is a cause for context.WithCancelCause that reads as Cancelled.
	ErrCancelled = errors.New("cancelled by a person")
)

var (
	// errDeadline is the cause of a context whose attempt, or phase of it, took too long.
	errDeadline = fmt.Errorf("time limit reached: %w", context.DeadlineExceeded)
	// errSentTwice is the cause of a context whose attempt asked for a second connection.
	errSentTwice = errors.New("the transport tried to send the request again")
)

// handshakeError marks an error as one of the TLS handshake, whatever its own type: an end of file there differs from
// one in an answer.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// configError is a request that cannot be made.
type configError struct{ sentence string }

func (e *configError) Error() string { return e.sentence }

// Failure is why an attempt has no complete answer. As an error it reads as its type and sentence, which are free of
// resolved addresses and payload; Err, which it unwraps to, may hold an address and is not to be shown or logged.
type Failure struct {
	Type  ErrorType
	Phase Phase
	// Err is what happened, for errors.Is and errors.As. It holds the cause of the caller's context when that ended the
	// attempt, and always wraps context.Canceled for Interrupted.
	Err error
	// Sentence says what is wrong and, where that helps, how to mend it. It may be shown to the tenant.
	Sentence string
}

func (f *Failure) Error() string { return string(f.Type) + ": " + f.Sentence }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// classify turns the error of an attempt into its failure. The order of the tests is that of the types.
func (a *attempt) classify(err error, phase Phase) *Failure {
	f := &Failure{Type: ConnectionFailed, Phase: phase, Err: err}
	defer func() { f.Sentence = a.sentence(f) }()

	cause := context.Cause(a.ctx)
	var (
		refused   *BlockedError
		lookup    *net.DNSError
		handshake *handshakeError
		config    *configError
	)
	switch {
	case errors.As(err, &refused), errors.As(cause, &refused):
		f.Type, f.Err = BlockedByPolicy, refused
	case errors.Is(cause, errSentTwice):
		f.Err = fmt.Errorf("%w: %w", errSentTwice, err)
	case errors.Is(cause, ErrCancelled):
		f.Type, f.Err = Cancelled, cause
	case cause != nil && !errors.Is(a.ctx.Err(), context.DeadlineExceeded):
		f.Type, f.Err = Interrupted, fmt.Errorf("%w: %w", ErrInterrupted, cause)
	case errors.As(err, &lookup) && !lookup.IsTimeout:
		f.Type, f.Phase = DnsFailure, PhaseDNS
	case errors.As(err, &handshake) && !isTimeout(err), isAlert(err):
		f.Type, f.Phase = TlsError, PhaseTLS
	case cause != nil, isTimeout(err):
		f.Type = Timeout
	case errors.As(err, &config):
		f.Type, f.Phase = ConfigurationError, ""
	}
	return f
}

// isTimeout reports whether an error stands for time that ran out: ours, the resolver's or the kernel's.
func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isAlert reports whether an error is a TLS alert. In TLS 1.3 a server that wants a certificate from the client says so
// only after the client has finished its handshake, so the alert arrives in place of the answer. The alert's own type is
// private to crypto/tls, which marks it by these operations.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}
