package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"net/netip"
	"sync"
	"time"
)

// attempt is the state of one call of [Door.Send]. The dialer finds it in the context, and the transport for HTTP/2 calls its hooks
// from several goroutines, some of them after Send has returned.
type attempt struct {
	judge    *judge
	host     string
	port     uint16
	origin   origin
	limits   Timeouts
	deadline time.Time
	// ctx is the caller's, or, once something is dialed for the attempt, one that ends with it. refuse ends that with a cause that is ours.
	ctx    context.Context
	refuse context.CancelCauseFunc
	cancel context.CancelFunc
	// session is an HTTP/2 session that was made for the attempt, until the transport takes it.
	session net.Conn

	mu         sync.Mutex
	phase      Phase
	phaseAt    time.Time
	peer       netip.AddrPort
	dialErr    error
	cancelDial context.CancelFunc
	abandoned  bool
	connected  bool
	connAt     time.Time
	reused     bool
	shared     bool // the connection is HTTP/2
	refused    bool
	wrote      bool
	timings    Timings
}

type attemptKey struct{}

// attemptFrom returns the attempt that a connection is dialed for. The transport is private and every context given to
// it holds one.
func attemptFrom(ctx context.Context) *attempt { return ctx.Value(attemptKey{}).(*attempt) }

// begin makes a context that ends with the attempt, for what is dialed and for the transport.
func (a *attempt) begin() {
	if a.cancel != nil {
		return
	}
	a.ctx, a.refuse = context.WithCancelCause(a.ctx)
	a.ctx, a.cancel = context.WithDeadlineCause(a.ctx, a.deadline, errDeadline)
	a.ctx = context.WithValue(a.ctx, attemptKey{}, a)
}

// end ends the context of begin, and closes what nobody took.
func (a *attempt) end() {
	if a.cancel == nil {
		return
	}
	a.cancel()
	a.refuse(nil)
	if session := a.takeSession(); session != nil {
		session.Close()
	}
}

// leave keeps an HTTP/2 session for the transport to take.
func (a *attempt) leave(session net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = session
}

// takeSession returns the HTTP/2 session that waits for the transport, nil when none does.
func (a *attempt) takeSession() net.Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	session := a.session
	a.session = nil
	return session
}

// use is gate 3 for a connection that the attempt has for itself, before anything is written on it.
func (a *attempt) use(c *conn, reused bool) (*conn, error) {
	err := a.judge.resolved(a.host, c.peer)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.connected, a.connAt, a.reused, a.peer, a.refused = true, time.Now(), reused, c.peer, err != nil
	if err != nil {
		c.hangUp()
		return nil, err
	}
	return c, nil
}

// trace is what the transport has to report about every attempt. Got1xxResponse must stay unset: with it the transport
// no longer counts informational answers against the limit of the headers.
func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn:              a.gotConn,
		WroteHeaders:         a.wroteHeaders,
		WroteRequest:         a.wroteRequest,
		GotFirstResponseByte: a.gotFirstByte,
	}
}

// dialTrace is what the dialer has to report when a connection is made.
func (a *attempt) dialTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { a.lookUp() },
		DNSDone: func(info httptrace.DNSDoneInfo) {
			if info.Err == nil {
				a.enter(PhaseConnect)
			}
		},
		ConnectDone: func(_, _ string, err error) {
			var refused *BlockedError
			if err != nil && !errors.As(err, &refused) {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.dialErr = err
			}
		},
	}
}

// enter begins a phase of making the connection and books the time of the one before.
func (a *attempt) enter(phase Phase) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase == phase {
		return
	}
	now := time.Now()
	a.book(now)
	a.phase, a.phaseAt = phase, now
}

// lookUp turns the connecting that has just begun into looking up a name.
func (a *attempt) lookUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phase = PhaseDNS
}

// book adds the time since the present phase began to its timing. The caller holds the lock.
func (a *attempt) book(now time.Time) {
	if a.phaseAt.IsZero() {
		return
	}
	spent := now.Sub(a.phaseAt)
	switch a.phase {
	case PhaseDNS:
		a.timings.DNS += spent
	case PhaseConnect:
		a.timings.Connect += spent
	case PhaseTLS:
		a.timings.TLS += spent
	}
	a.phaseAt = time.Time{}
}

// abandonWith sets what ends the present step of dialing, should the attempt fail first.
func (a *attempt) abandonWith(cancel context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancelDial = cancel
	if a.abandoned {
		cancel()
	}
}

// abandon ends dialing, now and later.
func (a *attempt) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.abandoned = true
	if a.cancelDial != nil {
		a.cancelDial()
	}
}

// tried notes an address that the guard let through to be connected to.
func (a *attempt) tried(peer netip.AddrPort) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.connected {
		a.peer = peer
	}
}

// dialed ends the making of a connection. A name may lead to addresses of both kinds: it is refused only when no address
// was left to try, and otherwise the error of a permitted one is the one that counts.
func (a *attempt) dialed(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.book(time.Now())
	var refused *BlockedError
	if errors.As(err, &refused) && a.dialErr != nil {
		return a.dialErr
	}
	return err
}

// gotConn is gate 3, and the guard of the one request. It runs before anything of the request is written. A second
// connection within the attempt is a retry that the transport makes by itself, be it for an idle connection that turned
// out closed or in the loop of HTTP/2.
//
// The hook cannot return an error, so it ends the attempt's context, which an HTTP/2 stream looks at under the write lock
// before it sends its headers. An HTTP/1 connection does not look, but is ours alone, so it is closed. A shared one is
// closed only when its address is refused, which concerns everyone on it.
func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	peer := addrPort(info.Conn.RemoteAddr())
	err := a.judge.resolved(a.host, peer)

	conn, shared := info.Conn, isHTTP2(info.Conn)
	if session, ok := conn.(*tls.Conn); ok {
		// Closing the session itself would first wait to write an alert.
		conn = session.NetConn()
	}

	a.mu.Lock()
	again := a.connected
	if !again {
		a.connected, a.connAt, a.reused, a.peer = true, time.Now(), info.Reused, peer
		a.shared, a.refused = shared, err != nil
	}
	a.mu.Unlock()

	if !again && err == nil {
		return
	}
	if again {
		a.refuse(errSentTwice)
	} else {
		a.refuse(err)
	}
	if !shared || err != nil {
		conn.Close()
	}
}

// wroteHeaders is where a request over HTTP/2 begins to count as written: the answer may come before the transport tells of the body.
func (a *attempt) wroteHeaders() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrote = a.wrote || a.shared
}

func (a *attempt) wroteRequest(info httptrace.WroteRequestInfo) { a.sent(info.Err) }

// sent notes that the request has been written as a whole, or why not.
func (a *attempt) sent(err error) {
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.wrote = true
	}
}

func (a *attempt) gotFirstByte() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timings.FirstByte = time.Since(a.connAt)
}

// failedPhase is the phase that an attempt without an answer had come to. Waiting for a connection to be dialed counts
// as connecting.
func (a *attempt) failedPhase() Phase {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.connected:
		return PhaseHeaders
	case a.phase == "":
		return PhaseConnect
	}
	return a.phase
}

// settle copies what is known of the attempt into its response.
func (a *attempt) settle(resp *Response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.connected {
		a.book(time.Now())
	}
	resp.Timings = a.timings
	if a.reused {
		resp.Timings.DNS, resp.Timings.Connect, resp.Timings.TLS = 0, 0, 0
	}
	resp.ReusedConn = a.reused
	resp.WroteRequest = a.connected && !a.refused && a.wrote
	if resp.Failure == nil || resp.Failure.Type != BlockedByPolicy {
		resp.Peer = a.peer
	}
}

// addrPort reads the address of a connection; it is not valid when the connection is no TCP one, which the gates refuse.
func addrPort(addr net.Addr) netip.AddrPort {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		ap := tcp.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}
