package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"net/netip"
	"syscall"
)

// dial makes a connection for the attempt in the context. The transport detaches that context from the attempt's end: when
// an HTTP/2 session comes free first, this one is made all the same. An attempt that fails abandons its dial.
func (d *Door) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.connect(ctx, attemptFrom(ctx), network, addr)
}

// dialTLS makes a connection and a TLS session on it. The handshake is made here and not by the transport because its
// limit belongs to the request and its errors have to be told from those of the connection.
func (d *Door) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	a := attemptFrom(ctx)
	if session := a.takeSession(); session != nil {
		return session, nil
	}
	conn, err := d.connect(ctx, a, network, addr)
	if err != nil {
		return nil, err
	}
	a.enter(PhaseTLS)
	ctx, cancel := context.WithTimeoutCause(ctx, a.limits.TLS, errDeadline)
	defer cancel()
	a.abandonWith(cancel)
	config := d.tls.Clone()
	config.ServerName = a.host
	session := tls.Client(conn, config)
	if err := session.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, &handshakeError{a.dialed(err)}
	}
	d.pool.speaks(a.origin, isHTTP2(session))
	return session, a.dialed(nil)
}

// isHTTP2 reports whether a connection is a TLS session in which both sides have agreed on HTTP/2 (RFC 9113, section 3.2).
func isHTTP2(conn net.Conn) bool {
	session, ok := conn.(*tls.Conn)
	return ok && session.ConnectionState().NegotiatedProtocol == "h2"
}

func (d *Door) connect(ctx context.Context, a *attempt, network, addr string) (net.Conn, error) {
	a.enter(PhaseConnect)
	ctx, cancel := context.WithTimeoutCause(ctx, a.limits.Connect, errDeadline)
	defer cancel()
	a.abandonWith(cancel)
	conn, err := d.dialer.DialContext(httptrace.WithClientTrace(ctx, a.dialTrace()), network, addr)
	if err := a.dialed(err); err != nil {
		return nil, err
	}
	return conn, nil
}

// control is gate 2. The dialer calls it for every address it is about to connect to, with the address as the kernel
// will see it, so no answer of a name server can come between the judgement and the connection.
func (d *Door) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	a := attemptFrom(ctx)
	peer, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return blockedHost(a.host)
	}
	if err := d.judge.resolved(a.host, peer); err != nil {
		return err
	}
	a.tried(netip.AddrPortFrom(plain(peer.Addr()), peer.Port()))
	return nil
}
