package egress

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// sentence says what a failure means for the person who owns the target. It names the host that the URL names, and
// never an address that it resolved to.
func (a *attempt) sentence(f *Failure) string {
	switch f.Type {
	case BlockedByPolicy, ConfigurationError:
		return f.Err.Error()
	case Interrupted:
		return "The attempt was interrupted because the server is shutting down. It does not count and will be made again."
	case Cancelled:
		return "The attempt was stopped because the task was cancelled."
	case DnsFailure:
		return a.lookupSentence(f.Err)
	case TlsError:
		return a.tlsSentence(f.Err)
	case Timeout:
		return a.timeoutSentence(f.Phase)
	}
	return a.connectionSentence(f.Err)
}

func (a *attempt) lookupSentence(err error) string {
	var lookup *net.DNSError
	if errors.As(err, &lookup) && lookup.IsNotFound {
		return fmt.Sprintf("The name %s does not exist or has no address. Check its spelling and its DNS records.", a.host)
	}
	return fmt.Sprintf("The name %s could not be looked up: its name servers gave no usable answer.", a.host)
}

func (a *attempt) tlsSentence(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return fmt.Sprintf("The certificate of %s is not signed by an authority that this server trusts. Check that it is no self-signed one and that its intermediate certificates are sent.", a.host)
	case errors.As(err, &name):
		return fmt.Sprintf("The certificate that the server sent is not valid for %s.", a.host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("The certificate of %s has expired or is not yet valid.", a.host)
	case errors.As(err, &record):
		return fmt.Sprintf("%s does not speak TLS on port %d.", a.host, a.port)
	case isAlert(err):
		return fmt.Sprintf("%s refused the TLS session. It may want a client certificate, or none of the protocol versions offered.", a.host)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Sprintf("%s closed the connection during the TLS handshake.", a.host)
	}
	return fmt.Sprintf("The TLS handshake with %s failed.", a.host)
}

// timeoutSentence names the limit of the phase only where that limit, and not the total one, ended it.
func (a *attempt) timeoutSentence(phase Phase) string {
	limit := a.limits.Total
	if a.ctx.Err() == nil {
		switch phase {
		case PhaseDNS, PhaseConnect:
			limit = a.limits.Connect
		case PhaseTLS:
			limit = a.limits.TLS
		}
	}
	within := limit.Round(time.Millisecond)
	switch phase {
	case PhaseDNS:
		return fmt.Sprintf("The name %s could not be looked up within %s.", a.host, within)
	case PhaseConnect:
		return fmt.Sprintf("No connection to %s within %s.", a.host, within)
	case PhaseTLS:
		return fmt.Sprintf("The TLS handshake with %s was not finished within %s.", a.host, within)
	case PhaseBody:
		return fmt.Sprintf("The body of the answer had not ended %s after the start of the attempt.", within)
	}
	return fmt.Sprintf("No answer within %s.", within)
}

func (a *attempt) connectionSentence(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refused the connection on port %d.", a.host, a.port)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Sprintf("%s cannot be reached from this server.", a.host)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "The receiver reset the connection before its answer was complete."
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errSentTwice):
		return "The receiver closed the connection before its answer was complete."
	}
	return "The connection failed, or the answer was no valid HTTP."
}
