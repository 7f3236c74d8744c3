package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// relayPorts are where mail relays take messages (RFC 5321, RFC 6409, RFC 8314), and the usual substitute for 587 where a
// network closes that.
var relayPorts = []uint16{25, 465, 587, 2525}

// RelayConn is a connection to a mail relay that went through the guard.
type RelayConn struct {
	net.Conn
	// Peer is the address that was connected to.
	Peer netip.AddrPort
	// Timings are those of looking up the name and connecting.
	Timings Timings
}

// DialRelay connects to a mail relay: the only way out that is not HTTP. The gates judge names and addresses as they do for
// URLs; ports are those of relays, or one that [Allow] names with the host. connect limits the look-up and the dial, 3 s when
// zero. Exactly one of the results is nil.
func (d *Door) DialRelay(ctx context.Context, host string, port uint16, connect time.Duration) (*RelayConn, *Failure) {
	a := &attempt{judge: d.judge, host: host, port: port, limits: Timeouts{Connect: connect}.withDefaults()}
	if end, ok := ctx.Deadline(); ok {
		a.limits.Total = max(0, time.Until(end))
	}
	ctx, a.refuse = context.WithCancelCause(ctx)
	defer a.refuse(nil)
	a.ctx = context.WithValue(ctx, attemptKey{}, a)

	if err := d.checkRelay(a); err != nil {
		return nil, a.classify(err, "")
	}
	conn, err := d.connect(a.ctx, a, "tcp", net.JoinHostPort(a.host, strconv.Itoa(int(port))))
	if err != nil {
		return nil, a.classify(err, a.failedPhase())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return &RelayConn{Conn: conn, Peer: addrPort(conn.RemoteAddr()), Timings: a.timings}, nil
}

// CheckRelay is gate 1 of DialRelay, for settings that are saved. The error is a *[BlockedError].
func (d *Door) CheckRelay(host string, port uint16) error {
	return d.checkRelay(&attempt{judge: d.judge, host: host, port: port})
}

// checkRelay judges host and port as they are written, and leaves the host in the form that is looked up.
func (d *Door) checkRelay(a *attempt) error {
	literal, err := netip.ParseAddr(strings.Trim(a.host, "[]"))
	if err == nil {
		a.host = literal.WithZone("").String()
	} else if a.host, err = canonicalName(a.host); err != nil || endsInNumber(a.host) {
		return blocked(RuleHost, "The relay is no host name. Write it like smtp.example.com.")
	}
	allow := &d.judge.allow
	if a.port == 0 || !slices.Contains(relayPorts, a.port) && !allow.permitsPort(a.host, plain(literal), a.port) {
		return blocked(RulePort, "Port %d is none of a mail relay's. Use 587, 465, 25 or 2525.", a.port)
	}
	if literal.IsValid() {
		return d.judge.literal(literal, a.port)
	}
	if isLocalName(a.host) && !allow.permitsHost(a.host, a.port) {
		return blocked(RuleName, "%s is a name for local use, which this installation does not call. Use a public name, or ask its administrator to allow this one.", a.host)
	}
	return nil
}
