package egress

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	defaultUserAgent = "Entrega"
	// defaultIdlePerHost fits several of the widest lanes: many endpoints may share a host, and to dial anew for each request costs
	// both sides more than the request.
	defaultIdlePerHost = 512
	maxIdle            = 2048
	// idleTimeout is shorter than what most servers keep, so that it is rarely the receiver who closes first: a request
	// that meets a closing connection is not sent again.
	idleTimeout = 30 * time.Second
	// maxHeaderBytes is for the headers of an answer, informational answers before it included.
	maxHeaderBytes = 16 << 10
	// pingAfter and pingTimeout find out that the other side of an HTTP/2 connection is gone.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
	tlsSessions = 512
)

// Options are the settings of a [Door]. The zero value calls public https addresses only.
type Options struct {
	// Allow is what the operator permits beyond the public internet.
	Allow Allow
	// AllowHTTP permits http URLs as well.
	AllowHTTP bool
	// DenyAddrs stay refused whatever Allow says: the addresses on which this installation and its database listen. An
	// unspecified address stands for every address of this machine.
	DenyAddrs []netip.AddrPort
	// Resolver looks up names; by default Go's own resolver with the settings of the system.
	Resolver *net.Resolver
	// RootCAs are the trusted authorities; by default those of the system.
	RootCAs *x509.CertPool
	// MaxIdleConnsPerHost is how many idle connections to keep for one host and port, 512 by default.
	MaxIdleConnsPerHost int
	// UserAgent is sent with requests that bring none, "Entrega" by default.
	UserAgent string
	// Now tells the time for the stamps of a response, time.Now by default. Durations are always measured.
	Now func() time.Time
}

// Door sends requests through the guard. It owns one connection pool and is safe for concurrent use.
type Door struct {
	judge     *judge
	allowHTTP bool
	userAgent string
	now       func() time.Time
	dialer    net.Dialer
	tls       *tls.Config
	pool      *pool
	transport *http.Transport // for HTTP/2
	targets   targets
}

// New returns a Door. It fails when an address to deny is incomplete or the user agent is no valid header value.
func New(opts Options) (*Door, error) {
	j, err := newJudge(opts.Allow, opts.DenyAddrs)
	if err != nil {
		return nil, err
	}
	d := &Door{judge: j, allowHTTP: opts.AllowHTTP, userAgent: opts.UserAgent, now: opts.Now}
	if d.userAgent == "" {
		d.userAgent = defaultUserAgent
	}
	if !httpguts.ValidHeaderFieldValue(d.userAgent) {
		return nil, fmt.Errorf("the user agent %q is no valid header value", d.userAgent)
	}
	if d.now == nil {
		d.now = time.Now
	}
	resolver := opts.Resolver
	if resolver == nil {
		// The system's resolver may read addresses in forms that the guard refuses, and cannot be interrupted.
		resolver = &net.Resolver{PreferGo: true}
	}
	perHost := opts.MaxIdleConnsPerHost
	if perHost <= 0 {
		perHost = defaultIdlePerHost
	}
	d.dialer = net.Dialer{Resolver: resolver, ControlContext: d.control}
	d.tls = &tls.Config{
		RootCAs:            opts.RootCAs,
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
	}
	d.pool = newPool(perHost, max(maxIdle, perHost))
	d.transport = d.newTransport(perHost)
	return d, nil
}

// newTransport is for what chose HTTP/2, over TLS; should that change its mind, HTTP/1.1 is spoken there too. It leaves Proxy
// unset, so the environment names none, and every limit on time to the attempt's context.
func (d *Door) newTransport(idlePerHost int) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:            d.dial, // Nothing goes this way; what ever did would go through the guard.
		DialTLSContext:         d.dialTLS,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression:     true,
		MaxIdleConns:           max(maxIdle, idlePerHost),
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// Deny refuses further addresses from now on, pooled connections to them included: a listener that was given port 0
// knows its address only once it listens.
func (d *Door) Deny(addrs ...netip.AddrPort) error { return d.judge.deny(addrs) }

// Close closes the idle connections. The door can still be used.
func (d *Door) Close() {
	d.pool.close()
	d.transport.CloseIdleConnections()
}
